import { CUSTOM } from '@interlude/protocol/event-fields';
import { fieldsOf } from '@interlude/protocol/fields';
import { reportsFailure } from '@interlude/protocol/insight';
import { MAX_REQUEST_BYTES } from '@interlude/protocol/limits';
import type { NewRow } from './statements';

export interface Bound {
  maxRows: number;
  maxBytes: number;
}

export interface QueueEnd {
  seq: number;
  rows: number;
  bytes: number;
  /** `lost` records at the end of the queue that can still count further drops, by agent and session. */
  openLosts: ReadonlyMap<string, OpenLost>;
}

export interface OpenLost {
  seq: number;
  count: number;
  bytes: number;
}

export interface AppendPlan {
  rows: NewRow[];
  /** Updated `lost` rows that are already in the file, by sequence number. */
  changes: Map<number, NewRow>;
  /** Records too large for any request, with the sequence number of their `lost` record. */
  poisoned: { seq: number; body: string }[];
  /** Excludes log lines of the outbox itself, which are dropped without a notice. */
  dropped: number;
  after: QueueEnd & { openLosts: Map<string, OpenLost> };
}

/** Shares of the bound above which log lines and task output are dropped. */
const LOG_SHARE = 0.9;
const OUTPUT_SHARE = 0.5;
/** Largest record that leaves room for the request envelope. */
export const LARGEST_RECORD_BYTES = MAX_REQUEST_BYTES - 2_048;

/**
 * Plans how an append changes the queue, before anything is written. Pure.
 *
 * A full outbox drops new records, because stored ones may already be in a request. Task output is dropped above half
 * of the bound and log lines above nine tenths, which leaves room for the agent's events. At the bound everything is
 * dropped.
 *
 * Ordering: sequence numbers follow the order of the candidates; each stored or lost record takes one. Consecutive
 * drops of one agent and session share a `lost` record, so a long outage costs one row.
 * Failure: `lost` records may exceed the bound; without these, a drop would be silent.
 */
export function planAppend(before: QueueEnd, candidates: Candidate[], bound: Bound): AppendPlan {
  const after = { ...before, openLosts: new Map(before.openLosts) };
  const plan: AppendPlan = { rows: [], changes: new Map(), poisoned: [], dropped: 0, after };
  const insert = ({ kind, body, bytes }: Candidate) => {
    after.seq += 1;
    after.rows += 1;
    after.bytes += bytes;
    plan.rows.push({ seq: after.seq, kind, bytes, body });
  };
  for (const candidate of candidates) {
    if (candidate.bytes > LARGEST_RECORD_BYTES) {
      after.openLosts.clear();
      insert(lostCandidate(candidate, 1, 'record-too-large'));
      plan.poisoned.push({ seq: after.seq, body: candidate.body });
    } else if (fits(candidate)) {
      after.openLosts.clear();
      insert(candidate);
    } else {
      if (candidate.isOutboxLine !== true) plan.dropped += 1;
      countDrop(candidate);
    }
  }
  return plan;

  function fits({ kind, bytes, isFailure, isOutput }: Candidate): boolean {
    const share = isOutput === true ? OUTPUT_SHARE : kind === 'log' && isFailure !== true ? LOG_SHARE : 1;
    const hasRoom = after.rows + 1 <= bound.maxRows * share && after.bytes + bytes <= bound.maxBytes * share;
    return kind === 'lost' || hasRoom;
  }

  function countDrop(candidate: Candidate): void {
    const key = JSON.stringify([candidate.agentId, candidate.sessionId]);
    const open = after.openLosts.get(key);
    const count = (open?.count ?? 0) + 1;
    const lost = lostCandidate(candidate, count, 'outbox-full');
    const { kind, body, bytes } = lost;
    if (open) {
      const row = { seq: open.seq, kind, bytes, body };
      if (open.seq > before.seq) plan.rows[open.seq - before.seq - 1] = row;
      else plan.changes.set(open.seq, row);
      after.bytes += bytes - open.bytes;
    } else {
      insert(lost);
    }
    after.openLosts.set(key, { seq: open?.seq ?? after.seq, count, bytes });
  }
}

/** A record to append: its JSON without `seq`, and the properties that decide whether it is kept. */
export interface Candidate {
  kind: string;
  agentId: string;
  sessionId: string | undefined;
  occurredAt: number;
  body: string;
  bytes: number;
  /** True for a log line about a failure that needs attention. */
  isFailure?: boolean;
  isOutput?: boolean;
  /** True for a log line of the outbox itself. */
  isOutboxLine?: boolean;
}

export const OUTBOX_COMPONENT = 'outbox';

/**
 * True for a log line of the outbox itself. The outbox raises no notices about such lines, since each notice would log
 * the next one.
 */
export function isOutboxLine({ log }: { log?: unknown }): boolean {
  return fieldsOf(log).component === OUTBOX_COMPONENT;
}

type RecordFields = Pick<Candidate, 'kind' | 'agentId' | 'occurredAt'> & {
  sessionId?: unknown;
  log?: unknown;
  event?: unknown;
};

/** @param record the parsed body, if available */
export function candidateOf(body: string, record = JSON.parse(body) as RecordFields): Candidate {
  const { kind, agentId, occurredAt, log, event } = record;
  const sessionId = record.sessionId as string | undefined;
  const isFailure = log !== undefined && reportsFailure(log as Parameters<typeof reportsFailure>[0]);
  const isOutput = fieldsOf(event).name === CUSTOM.taskOutput;
  const is = { isFailure, isOutput, isOutboxLine: isOutboxLine({ log }) };
  return { kind, agentId, sessionId, occurredAt, body, bytes: Buffer.byteLength(body), ...is };
}

export type LostReason = 'outbox-full' | 'outbox-corrupt' | 'record-too-large' | 'refused-by-server' | 'lost-by-server';

export function lostCandidate(
  { agentId, sessionId, occurredAt }: { agentId: string; sessionId?: string | undefined; occurredAt: number },
  count: number,
  reason: LostReason,
): Candidate {
  const record = { kind: 'lost', agentId, sessionId, occurredAt, lost: { count, reason } };
  return candidateOf(JSON.stringify(record), record);
}
