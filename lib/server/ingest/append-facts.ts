import { SERVER_PRODUCER_ID } from '@interlude/protocol/envelope';
import { EVERYTHING } from '@interlude/protocol/scope';
import type { WriteTransaction } from '@/db/writes';
import { collectScope } from './collect-scope';
import { commitBatch } from './commit-batch';
import type { AgentFact, EventFact } from './facts';
import { type ValidatedRecord, validateRecord } from './validate-record';

/** Constant, because no outbox sends as the server, so nothing needs fencing. */
const EPOCH = 1;

/**
 * Appends the server's own facts with the same plan as the records of an outbox. No other code changes rows of the read
 * models. A fact is no sign of life of the agent.
 *
 * Failure: runs in the caller's transaction, so a fact is stored together with the change it reports, or not at all.
 *
 * @returns the counter after the facts
 */
export async function appendFacts(
  transaction: WriteTransaction,
  receivedAt: number,
  facts: readonly (EventFact | AgentFact)[],
): Promise<string | null> {
  if (facts.length === 0) return null;
  const { rows } = await transaction.execute({
    sql: 'SELECT last_seq FROM producers WHERE id = ? AND epoch = ?',
    args: [SERVER_PRODUCER_ID, EPOCH],
  });
  // Concurrent transactions on a libSQL server don't see each other's seq numbers, but never share positions.
  const lastSeq = Math.max(Number(rows[0]?.last_seq ?? 0), await transaction.position());
  const source = { id: SERVER_PRODUCER_ID, epoch: EPOCH };
  const records = facts.map((fact, index): ValidatedRecord => {
    const seq = lastSeq + 1 + index;
    if ('kind' in fact) return { raw: { seq }, validation: { isValid: true, record: fact } };
    const raw = { seq, kind: 'event', occurredAt: receivedAt, ...fact };
    return { raw, validation: validateRecord(raw, false) };
  });
  const scope = await collectScope(source, records);
  const batch = { source, records, scope, reach: EVERYTHING, aliasSecret: null, receivedAt };
  const outcome = await commitBatch(transaction, batch, 0);
  if (outcome.kind !== 'answered' || outcome.answer.rejected.length > 0) {
    throw new Error(`the server's own facts were rejected: ${JSON.stringify(outcome)}`);
  }
  return outcome.answer.position;
}
