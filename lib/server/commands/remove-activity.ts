import { ACTIVITY_KEPT_MINUTES, MINUTE_MS } from '@interlude/protocol/limits';
import type { DueRows } from '@/db/row-sweep';
import type { WriteTransaction } from '@/db/writes';

/** Rows of one transaction: one for each agent and minute. */
const MAX_REMOVED = 500;

/** The minutes of which nobody is shown the activity any more. */
export function oldActivity(now: number): DueRows {
  const oldest = Math.floor(now / MINUTE_MS) - ACTIVITY_KEPT_MINUTES;
  return { table: 'activity', key: 'rowid', where: 'minute < ?1', args: [oldest], order: 'minute' };
}

/** @returns how many rows went; call again until it is 0 */
export async function removeActivity(transaction: WriteTransaction, now: number): Promise<number> {
  const { where, args } = oldActivity(now);
  const { rows } = await transaction.execute({
    sql: `DELETE FROM activity WHERE rowid IN (SELECT rowid FROM activity WHERE ${where} LIMIT ${MAX_REMOVED}) RETURNING 1`,
    args: [...args],
  });
  return rows.length;
}
