import type { WriteTransaction } from '@/db/write-queue';
import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import { SERVER_PRODUCER_ID } from '@/lib/protocol/envelope';
import { commitBatch, scopeOf } from './commit-batch';
import { judgeRecord } from './judge-record';

export interface ServerEvent {
  agentId: string;
  sessionId: string;
  /** Where it is not now: of what was told before and could not be taken then. */
  occurredAt?: number;
  event: AgUiEvent;
}

/** There is one server log for ever: its events need no fencing, because the write queue is their only sender. */
const EPOCH = 1;

/**
 * Appends what the server itself has to say in sessions, on the path every outbox's records take: the same positions,
 * projections and read models. It is no sign of life of the agent.
 *
 * Failure: runs in the caller's transaction, so what the events tell of and the events stand together or not at all.
 */
export async function appendServerEvents(
  transaction: WriteTransaction,
  receivedAt: number,
  events: readonly ServerEvent[],
): Promise<void> {
  if (events.length === 0) return;
  const { rows } = await transaction.execute({
    sql: 'SELECT last_seq FROM producers WHERE id = ? AND epoch = ?',
    args: [SERVER_PRODUCER_ID, EPOCH],
  });
  const lastSeq = Number(rows[0]?.last_seq ?? 0);
  const source = { id: SERVER_PRODUCER_ID, epoch: EPOCH };
  const records = events.map((fields, index) => {
    const raw = { seq: lastSeq + 1 + index, kind: 'event', occurredAt: receivedAt, ...fields };
    return { raw, judgement: judgeRecord(raw, false) };
  });
  const scope = await scopeOf(source, records);
  const outcome = await commitBatch(transaction, { source, records, scope, receivedAt }, 0);
  if (outcome.kind !== 'answered' || outcome.answer.rejected.length > 0) {
    throw new Error(`the server's own events were not taken: ${JSON.stringify(outcome)}`);
  }
}
