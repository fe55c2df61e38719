import { MAX_REQUEST_BYTES } from '@/lib/protocol/limits';
import { admit, type Bound, type Candidate, lostBody } from './admission';
import type { NewRow } from './statements';

/**
 * What storing some records will change, worked out before anything is written. Pure.
 *
 * Ordering: numbers are given out in the order of the candidates, one to each that is stored or declared lost.
 */
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
}

export interface AppendPlan {
  rows: NewRow[];
  /** New bodies of `lost` records that are in the file already and count more now, by their number. */
  changes: Map<number, string>;
  /** Records that no request can hold, by the number their `lost` record got. */
  poisoned: { seq: number; body: string }[];
  dropped: number;
  after: QueueEnd & { openLosts: Map<string, OpenLost> };
}

/** Room for the rest of a request around the one record in it. */
export const LARGEST_RECORD_BYTES = MAX_REQUEST_BYTES - 2_048;

export function planAppend(before: QueueEnd, candidates: Candidate[], bound: Bound): AppendPlan {
  const after = { ...before, openLosts: new Map(before.openLosts) };
  const plan: AppendPlan = { rows: [], changes: new Map(), poisoned: [], dropped: 0, after };
  const insert = (kind: string, body: string, bytes: number) => {
    after.seq += 1;
    after.rows += 1;
    after.bytes += bytes;
    plan.rows.push({ seq: after.seq, kind, bytes, body });
  };
  for (const candidate of candidates) {
    if (candidate.bytes > LARGEST_RECORD_BYTES) {
      after.openLosts.clear();
      const body = lostBody(candidate, 1, 'record-too-large');
      insert('lost', body, Buffer.byteLength(body));
      plan.poisoned.push({ seq: after.seq, body: candidate.body });
    } else if (admit(candidate, after, bound) === 'take') {
      after.openLosts.clear();
      insert(candidate.kind, candidate.body, candidate.bytes);
    } else {
      plan.dropped += 1;
      countDrop(candidate);
    }
  }
  return plan;

  function countDrop(candidate: Candidate): void {
    const key = JSON.stringify([candidate.agentId, candidate.sessionId]);
    const open = after.openLosts.get(key);
    const count = (open?.count ?? 0) + 1;
    const body = lostBody(candidate, count, 'outbox-full');
    const mine = open && plan.rows[open.seq - before.seq - 1];
    if (mine) mine.body = body;
    else if (open) plan.changes.set(open.seq, body);
    else insert('lost', body, Buffer.byteLength(body));
    after.openLosts.set(key, { seq: open?.seq ?? after.seq, count });
  }
}
