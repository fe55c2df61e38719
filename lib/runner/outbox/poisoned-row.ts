import { tellsFailure } from '@/lib/protocol/insight';
import type { Candidate } from './admission';

/** A record that the server will never take, as it is kept. */
export interface PoisonedRow {
  id: number;
  epoch: number;
  seq: number;
  reason: string;
  poisonedAt: number;
  body: string;
  /** `redrive`: to be sent again by whoever has the outbox open; `redriven`: that has been done. */
  state: PoisonState;
  /** When a person decided so, epoch milliseconds. */
  decidedAt: number | null;
}

export type PoisonState = 'kept' | 'redrive' | 'redriven' | 'discarded';

/** A row of `poisoned`, with its state. */
export function poisonedRow(row: Record<string, unknown>): PoisonedRow {
  return {
    id: Number(row.id),
    epoch: Number(row.epoch),
    seq: Number(row.seq),
    reason: String(row.reason),
    poisonedAt: Number(row.poisoned_at),
    body: String(row.body),
    state: String(row.state) as PoisonState,
    decidedAt: row.decided_at === null ? null : Number(row.decided_at),
  };
}

/** The record of a poisoned row, on its way into the queue again. */
export function candidateOf(body: string): Candidate {
  const { kind, agentId, sessionId, occurredAt, log } = JSON.parse(body) as Candidate & {
    log?: Parameters<typeof tellsFailure>[0];
  };
  const bytes = Buffer.byteLength(body);
  return { kind, agentId, sessionId, occurredAt, body, bytes, isFailure: log !== undefined && tellsFailure(log) };
}
