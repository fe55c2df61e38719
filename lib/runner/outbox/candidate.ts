import { CUSTOM } from '@interlude/protocol/event-fields';
import { fieldsOf } from '@interlude/protocol/fields';
import { reportsFailure } from '@interlude/protocol/insight';

/** A record on its way into the outbox's file: its JSON without `seq`, and what has to be known of it. */
export interface Candidate {
  kind: string;
  agentId: string;
  sessionId: string | undefined;
  occurredAt: number;
  body: string;
  bytes: number;
  /** A log line that tells of a failure a person has to look at. */
  isFailure?: boolean;
  /** What a task wrote. */
  isOutput?: boolean;
  /** The outbox's own words. */
  isOutboxLine?: boolean;
}

/** The component of the outbox in an agent's log. */
export const OUTBOX_COMPONENT = 'outbox';

/** The outbox says nothing of what becomes of its own lines: each would be the next one's reason. */
export function isOutboxLine({ log }: { log?: unknown }): boolean {
  return fieldsOf(log).component === OUTBOX_COMPONENT;
}

type Said = Pick<Candidate, 'kind' | 'agentId' | 'occurredAt'> & {
  sessionId?: unknown;
  log?: unknown;
  event?: unknown;
};

/** @param record what the body says, where that is at hand */
export function candidateOf(body: string, record = JSON.parse(body) as Said): Candidate {
  const { kind, agentId, occurredAt, log, event } = record;
  const sessionId = record.sessionId as string | undefined;
  const isFailure = log !== undefined && reportsFailure(log as Parameters<typeof reportsFailure>[0]);
  const isOutput = fieldsOf(event).name === CUSTOM.taskOutput;
  const is = { isFailure, isOutput, isOutboxLine: isOutboxLine({ log }) };
  return { kind, agentId, sessionId, occurredAt, body, bytes: Buffer.byteLength(body), ...is };
}

export type LostReason = 'outbox-full' | 'outbox-corrupt' | 'record-too-large' | 'refused-by-server' | 'lost-by-server';

/** The record that declares a loss. */
export function lostCandidate(
  { agentId, sessionId, occurredAt }: { agentId: string; sessionId?: string | undefined; occurredAt: number },
  count: number,
  reason: LostReason,
): Candidate {
  const record = { kind: 'lost', agentId, sessionId, occurredAt, lost: { count, reason } };
  return candidateOf(JSON.stringify(record), record);
}
