import { SERVER_PRODUCER_ID } from '@interlude/protocol/envelope';
import { EVERYTHING } from '@interlude/protocol/scope';
import type { WriteTransaction } from '@/db/writes';
import { collectScope } from './collect-scope';
import { commitBatch } from './commit-batch';
import type { AgentFact, EventFact } from './facts';
import type { ValidatedRecord } from './validate-record';
import { validateRecord } from './validate-record';

/** The server has only one epoch: its facts need no fencing, because nobody sends them. */
const EPOCH = 1;

/**
 * Appends facts in the same way as the records of an outbox: with the same positions, projections and read models. No row
 * of the fleet is written in any other way. A fact is not a sign of life of the agent, unless it says so.
 *
 * Failure: runs in the caller's transaction, so the facts are stored together with what they tell of, or not at all.
 *
 * @returns the counter after them
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
  // On a server, several append at once: none of them knows the others' numbers, but no two take the same positions.
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
    throw new Error(`the server's own facts were not taken: ${JSON.stringify(outcome)}`);
  }
  return outcome.answer.position;
}
