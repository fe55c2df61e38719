import { type DueRows, EVERY_ROW, type RowChoice, selectDue } from '@/db/row-sweep';
import { obligations } from '@/db/schema';
import { shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { appendFacts } from '@/lib/ingest/append-facts';

/**
 * Replies that are owed for too long, as long as they can be expected: an agent that waits for its operator, has failed
 * or has exited owes none in time. How long one is owed is in its row, so that it is told after a restart, on any
 * instance, and by the time that is set then. A session that comes to be able to reply, or no longer is, has its rows
 * judged anew.
 */

const AWAITED = shapeOf(obligations, 'sessionId', 'agentId', 'body');

/** @param overdueMs how long a reply may be owed */
export function overdueReplies(now: number, overdueMs: number): DueRows {
  return {
    table: 'obligations',
    key: 'rowid',
    where: `state = 'owed' AND is_judged = 0 AND owed_since <= ?1`,
    args: [now - overdueMs],
    order: 'owed_since',
  };
}

/** @returns how many were judged; call again until it is 0 */
export async function judgeReplies(
  transaction: WriteTransaction,
  { now, overdueMs }: { now: number; overdueMs: number },
  choice: RowChoice = EVERY_ROW,
): Promise<number> {
  const due = selectDue(overdueReplies(now, overdueMs), choice, `rowid AS number, ${AWAITED.columns()}`);
  const { rows } = await transaction.execute(due);
  const facts = rows.map((row) => {
    const { agentId, sessionId, body } = AWAITED.read(row);
    return { kind: 'reply-overdue' as const, agentId, sessionId, messageId: body.messageId };
  });
  await appendFacts(transaction, now, facts);
  // also those that stay as they are
  await transaction.execute({
    sql: 'UPDATE obligations SET is_judged = 1 WHERE rowid IN (SELECT value FROM json_each(?))',
    args: [JSON.stringify(rows.map(({ number }) => Number(number)))],
  });
  return rows.length;
}
