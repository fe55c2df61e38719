'use client';

import type { Item, RequestItem, ToolCallItem, Turn } from '@interlude/protocol/read-models';
import { createContext, type ReactNode, useContext, useMemo, useState } from 'react';

/** How it stands with a call. One that asks whether it may run does not run, whatever its events say so far. */
export type CallStanding = ToolCallItem['status'] | 'waiting' | 'denied' | 'expired' | 'withdrawn';

/**
 * @param request what was asked about it last
 * @param isOver whether the time to answer that is over
 */
export function callStanding(
  { status }: Pick<ToolCallItem, 'status'>,
  request: Pick<RequestItem, 'outcome' | 'answer'> | undefined,
  isOver: boolean,
): CallStanding {
  switch (request?.outcome) {
    case null:
      // Its turn may have ended while it waits.
      if (status === 'completed' || status === 'failed') return status;
      return hasLapsed(request, isOver) ? 'expired' : 'waiting';
    case 'denied':
    case 'expired':
      return request.outcome;
    case 'cancelled':
      // Nobody asks any more, which may be because it was allowed where the agent runs.
      return status === 'completed' ? status : 'withdrawn';
    default:
      return status;
  }
}

/** Whether the time to answer a request is over, and no answer is on its way, though nobody has said so. */
export function hasLapsed({ outcome, answer }: Pick<RequestItem, 'outcome' | 'answer'>, isOver: boolean): boolean {
  return isOver && outcome === null && (answer === null || answer.state === 'failed');
}

/**
 * What was asked about each call, by its id: the last, where it was asked more than once. A request that names no call is
 * about the one that runs under its tool's name with its input, if there is just one.
 */
export function requestsByCall(items: readonly Item[]): ReadonlyMap<string, RequestItem> {
  const requests = new Map<string, RequestItem>();
  for (const item of items) {
    if (item.kind !== 'request') continue;
    const callId = item.toolCallId ?? callAskedAbout(item, items);
    if (callId !== null) requests.set(callId, item);
  }
  return requests;
}

const UNANSWERED: ReadonlySet<ToolCallItem['status']> = new Set(['running', 'unknown']);

/** Of longer arguments it is not found out whether they are the same. */
const MOST_COMPARED = 20_000;

function callAskedAbout({ toolName, input, outcome }: RequestItem, items: readonly Item[]): string | null {
  if (toolName === null || outcome !== null) return null;
  const calls = items.filter(
    (item) => item.kind === 'tool-call' && UNANSWERED.has(item.status) && item.name === toolName,
  );
  const [call] = calls as ToolCallItem[];
  if (call === undefined || calls.length > 1 || call.argsText.length > MOST_COMPARED) return null;
  return isSame(call.args, input) ? call.id : null;
}

/** Of two values of JSON; found out in as many steps as the first has values. */
function isSame(one: unknown, other: unknown): boolean {
  if (typeof one !== 'object' || one === null || typeof other !== 'object' || other === null) return one === other;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const fields = Object.entries(one);
  if (fields.length !== Object.keys(other).length) return false;
  return fields.every(([name, value]) => Object.hasOwn(other, name) && isSame(value, Reflect.get(other, name)));
}

/** What was asked about each of some calls, by the call's id. */
export type AskedRequests = Pick<ReadonlyMap<string, RequestItem>, 'get'>;

const NONE: ReadonlyMap<string, RequestItem> = new Map();

const Elsewhere = createContext<AskedRequests>(NONE);

/**
 * Requests that stand apart from the call they are about: a run may end in order to ask, and what a subagent wants to do
 * is asked in the turn, while its calls stand in the card of its task.
 */
export function RequestsElsewhere({ turns, children }: { turns: readonly Turn[]; children: ReactNode }) {
  // The same while they are: a turn that grows renders no other one.
  const found = useMemo(() => new Map(turns.flatMap(({ items }) => [...apartIn(items)])), [turns]);
  const [known, setKnown] = useState(found);
  const isSame = found.size === known.size && [...found].every(([id, request]) => known.get(id) === request);
  if (!isSame) setKnown(found);
  return <Elsewhere value={isSame ? known : found}>{children}</Elsewhere>;
}

export function useRequestsElsewhere(): AskedRequests {
  return useContext(Elsewhere);
}

const apart = new WeakMap<readonly Item[], ReadonlyMap<string, RequestItem>>();

/** Those of a turn whose call is not in it; of a turn that did not change they are known. */
function apartIn(items: readonly Item[]): ReadonlyMap<string, RequestItem> {
  const known = apart.get(items);
  if (known !== undefined) return known;
  const found = new Map<string, RequestItem>();
  for (const item of items) if (item.kind === 'request' && item.toolCallId !== null) found.set(item.toolCallId, item);
  if (found.size > 0) for (const item of items) if (item.kind === 'tool-call') found.delete(item.id);
  apart.set(items, found);
  return found;
}
