import { CUSTOM } from '@interlude/protocol/ag-ui';
import { fieldsOf } from '@interlude/protocol/fields';
import { tellsFailure } from '@interlude/protocol/insight';
import { MAX_REQUEST_BYTES } from '@interlude/protocol/limits';
import type { NewRow } from './statements';

/**
 * What storing some records will change, worked out before anything is written. Pure.
 *
 * A full outbox drops what tasks wrote first, from half of the bound on, and log lines from nine tenths on, so that what
 * an agent said and did still finds room when all else has filled the disk. At the bound it drops everything. It drops the newest: what already has a
 * `seq` may be under way and keeps it.
 *
 * Ordering: numbers are given out in the order of the candidates, one to each that is stored or declared lost. As long
 * as nothing else follows, further drops of the same agent and session are counted into the `lost` record of the first,
 * so a long outage costs one row and not one per drop.
 * Failure: `lost` records are let in beyond the bound; they are what keeps a drop from being silent.
 */
export interface Bound {
  maxRows: number;
  maxBytes: number;
}

export interface QueueEnd {
  /** The newest number given out. */
  seq: number;
  rows: number;
  bytes: number;
  /** `lost` records at the very end of the queue, by agent and session, that may still count further drops. */
  openLosts: ReadonlyMap<string, OpenLost>;
}

export interface OpenLost {
  seq: number;
  count: number;
  bytes: number;
}

export interface AppendPlan {
  rows: NewRow[];
  /** What `lost` records that are in the file already and count more now become, by their number. */
  changes: Map<number, NewRow>;
  /** Records that no request can hold, by the number their `lost` record got. */
  poisoned: { seq: number; body: string }[];
  /** Excludes the outbox's own log lines, which are dropped without a notice. */
  dropped: number;
  after: QueueEnd & { openLosts: Map<string, OpenLost> };
}

/** From these shares of the bound on, log lines and what tasks wrote are dropped. */
const LOG_SHARE = 0.9;
const OUTPUT_SHARE = 0.5;
/** Room for the rest of a request around the one record in it. */
export const LARGEST_RECORD_BYTES = MAX_REQUEST_BYTES - 2_048;

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

type RecordFields = Pick<Candidate, 'kind' | 'agentId' | 'occurredAt'> & {
  sessionId?: unknown;
  log?: unknown;
  event?: unknown;
};

/** @param record what the body says, where that is at hand */
export function candidateOf(body: string, record = JSON.parse(body) as RecordFields): Candidate {
  const { kind, agentId, occurredAt, log, event } = record;
  const sessionId = record.sessionId as string | undefined;
  const isFailure = log !== undefined && tellsFailure(log as Parameters<typeof tellsFailure>[0]);
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
