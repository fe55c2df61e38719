import { type DueRows, EVERY_ROW, type RowChoice, selectDue } from '@/db/row-sweep';
import type { WriteTransaction } from '@/db/writes';
import { appendFacts } from '@/lib/ingest/append-facts';

/**
 * States that time alone changes: an agent that is still for a while waits on its tasks, a message is not on its way for
 * ever. When each has to be looked at again is in its row, so that it is right after a restart and on any instance.
 */

/** Most sessions of one transaction. */
const MAX_RESOLVED = 100;

/** The sessions whose state may have changed. */
export function dueStates(now: number): DueRows {
  return { table: 'sessions', key: 'id', where: 'state_due_at <= ?1', args: [now], order: 'state_due_at' };
}

/** @returns how many sessions were looked at; call again until it is 0 */
export async function resolveDueStates(
  transaction: WriteTransaction,
  now: number,
  choice: RowChoice = EVERY_ROW,
): Promise<number> {
  const { rows } = await transaction.execute(selectDue(dueStates(now), choice, 'id, agent_id', MAX_RESOLVED));
  const facts = rows.map((row) => ({
    kind: 'state-due' as const,
    agentId: String(row.agent_id),
    sessionId: String(row.id),
  }));
  await appendFacts(transaction, now, facts);
  return rows.length;
}
