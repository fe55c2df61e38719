'use client';

import type { Item, RequestItem, ToolCallItem, Turn } from '@interlude/protocol/read-models';
import { createContext, type ReactNode, useContext, useMemo, useState } from 'react';

/** State of a tool call. A call that waits for permission is not running, whatever its events say. */
export type CallState = ToolCallItem['status'] | 'waiting' | 'denied' | 'expired' | 'withdrawn';

/**
 * @param request the last request about the call
 * @param isOver the request's time limit has passed
 */
export function callState(
  { status }: Pick<ToolCallItem, 'status'>,
  request: Pick<RequestItem, 'outcome' | 'answer'> | undefined,
  isOver: boolean,
): CallState {
  switch (request?.outcome) {
    case null:
      // The turn may have ended while the request waits.
      if (status === 'completed' || status === 'failed') return status;
      return hasExpired(request, isOver) ? 'expired' : 'waiting';
    case 'denied':
    case 'expired':
      return request.outcome;
    case 'cancelled':
      // The call may have been allowed in the agent's terminal.
      return status === 'completed' ? status : 'withdrawn';
    default:
      return status;
  }
}

/**
 * True if the request's time limit has passed, no answer is in progress and the agent has not reported the expiry yet.
 */
export function hasExpired({ outcome, answer }: Pick<RequestItem, 'outcome' | 'answer'>, isOver: boolean): boolean {
  return isOver && outcome === null && (answer === null || answer.state === 'failed');
}

/**
 * The last request about each call, by call id. A request without a call id belongs to the only running call with the
 * same tool and input.
 */
export function requestsByCall(items: readonly Item[]): ReadonlyMap<string, RequestItem> {
  const requests = new Map<string, RequestItem>();
  for (const item of items) {
    if (item.kind !== 'request') continue;
    const callId = item.toolCallId ?? matchingCall(item, items);
    if (callId !== null) requests.set(callId, item);
  }
  return requests;
}

const UNANSWERED: ReadonlySet<ToolCallItem['status']> = new Set(['running', 'unknown']);

/** Longer arguments are not compared. */
const MAX_COMPARED = 20_000;

function matchingCall({ toolName, input, outcome }: RequestItem, items: readonly Item[]): string | null {
  if (toolName === null || outcome !== null) return null;
  const calls = items.filter(
    (item) => item.kind === 'tool-call' && UNANSWERED.has(item.status) && item.name === toolName,
  );
  const [call] = calls as ToolCallItem[];
  if (call === undefined || calls.length > 1 || call.argsText.length > MAX_COMPARED) return null;
  return isSame(call.args, input) ? call.id : null;
}

/** Deep equality of JSON values. */
function isSame(one: unknown, other: unknown): boolean {
  if (typeof one !== 'object' || one === null || typeof other !== 'object' || other === null) return one === other;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const fields = Object.entries(one);
  if (fields.length !== Object.keys(other).length) return false;
  return fields.every(([name, value]) => Object.hasOwn(other, name) && isSame(value, Reflect.get(other, name)));
}

/** Requests by call id. */
export type RequestLookup = Pick<ReadonlyMap<string, RequestItem>, 'get'>;

const NONE: ReadonlyMap<string, RequestItem> = new Map();

const Elsewhere = createContext<RequestLookup>(NONE);

/**
 * Provides requests that are not in the same turn as their call: a run may end to ask something, and a subagent's
 * requests are in the turn, but its calls are in the task's card.
 */
export function DetachedRequests({ turns, children }: { turns: readonly Turn[]; children: ReactNode }) {
  // Stable while equal, so that a growing turn doesn't render the others.
  const found = useMemo(() => new Map(turns.flatMap(({ items }) => [...detachedIn(items)])), [turns]);
  const [known, setKnown] = useState(found);
  const isSame = found.size === known.size && [...found].every(([id, request]) => known.get(id) === request);
  if (!isSame) setKnown(found);
  return <Elsewhere value={isSame ? known : found}>{children}</Elsewhere>;
}

export function useDetachedRequests(): RequestLookup {
  return useContext(Elsewhere);
}

const apart = new WeakMap<readonly Item[], ReadonlyMap<string, RequestItem>>();

/** Requests whose call is not in the turn. Cached per turn. */
function detachedIn(items: readonly Item[]): ReadonlyMap<string, RequestItem> {
  const known = apart.get(items);
  if (known !== undefined) return known;
  const found = new Map<string, RequestItem>();
  for (const item of items) if (item.kind === 'request' && item.toolCallId !== null) found.set(item.toolCallId, item);
  if (found.size > 0) for (const item of items) if (item.kind === 'tool-call') found.delete(item.id);
  apart.set(items, found);
  return found;
}
