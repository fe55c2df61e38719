import { type DueRows, EVERY_ROW, type RowChoice, selectDue } from '@/db/row-sweep';
import { obligations } from '@/db/schema';
import { shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { appendFacts } from '@/lib/server/ingest/append-facts';

/**
 * Replies owed for too long by agents that can reply: one that waits for its operator, has failed or has exited can't.
 * `owed_since` is in the row, so any instance judges the same, also after a restart and with another setting. When a
 * session becomes able or unable to reply, ingest marks its rows to be judged again.
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

/** @returns the number of rows judged; call again until it is 0 */
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
  // rows that did not change are judged, too
  await transaction.execute({
    sql: 'UPDATE obligations SET is_judged = 1 WHERE rowid IN (SELECT value FROM json_each(?))',
    args: [JSON.stringify(rows.map(({ number }) => Number(number)))],
  });
  return rows.length;
}
