import { type DueRows, EVERY_ROW, type RowChoice, selectDue } from '@/db/row-sweep';
import { obligations } from '@/db/schema';
import { shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { appendFacts } from '@/lib/ingest/append-facts';

/**
 * Replies that are owed for too long. How long one is owed is in its row, so that it is told after a restart, on any
 * instance, and by the time that is set then.
 */

const AWAITED = shapeOf(obligations, 'sessionId', 'agentId', 'body');

/** @param overdueMs how long a reply may be owed */
export function overdueReplies(now: number, overdueMs: number): DueRows {
  return {
    table: 'obligations',
    key: 'rowid',
    where: `state = 'owed' AND is_overdue = 0 AND owed_since <= ?1`,
    args: [now - overdueMs],
    order: 'owed_since',
  };
}

/** @returns how many became overdue; call again until it is 0 */
export async function tellOverdue(
  transaction: WriteTransaction,
  { now, overdueMs }: { now: number; overdueMs: number },
  choice: RowChoice = EVERY_ROW,
): Promise<number> {
  const { rows } = await transaction.execute(selectDue(overdueReplies(now, overdueMs), choice, AWAITED.columns()));
  const facts = rows.map((row) => {
    const { agentId, sessionId, body } = AWAITED.read(row);
    return { kind: 'reply-overdue' as const, agentId, sessionId, messageId: body.messageId };
  });
  await appendFacts(transaction, now, facts);
  return rows.length;
}
