import type { InStatement } from '@libsql/client';
import { columnText } from '@/db/column-text';
import { withinBytes } from '@/db/within-bytes';
import type { WriteTransaction } from '@/db/writes';

/** Most events of one transaction, for which ingest may have to wait. */
const EVENTS_AT_ONCE = 500;
/** And most bytes of them, after the first. */
const BYTES_AT_ONCE = 8 * 1024 * 1024;

/**
 * Removes events in front of a session's cut, some at a time. What a later turn shows stays (a message that waited for
 * it), and so does what is said and written by tasks that are still there.
 *
 * @param after where the last call has come to; 0 at first
 * @returns how far it came; null once there is nothing more
 */
export async function removeOldEvents(
  transaction: WriteTransaction,
  sessionId: string,
  after: number,
): Promise<number | null> {
  const { rows } = await transaction.execute(goneEvents(sessionId, after, EVENTS_AT_ONCE));
  const gone = withinBytes(rows, BYTES_AT_ONCE).map(({ position }) => Number(position));
  if (gone.length === 0) return null;
  await transaction.execute({
    sql: 'DELETE FROM events WHERE position IN (SELECT value FROM json_each(?))',
    args: [JSON.stringify(gone)],
  });
  return gone.at(-1) ?? null;
}

/** Events that nothing shows any more, oldest first. */
export function goneEvents(sessionId: string, after: number, limit: number) {
  return {
    sql: `SELECT position, octet_length(payload) AS size FROM events AS e WHERE session_id = ?1 AND position > ?2
        AND position <= (SELECT removed_up_to FROM sessions WHERE id = ?1)
        AND CASE
          WHEN name = 'task:output' THEN NOT EXISTS (
            SELECT 1 FROM tasks WHERE session_id = ?1 AND position = CAST(e.entity_id AS INTEGER))
          WHEN turn_id LIKE 'task:%' THEN NOT EXISTS (
            SELECT 1 FROM tasks WHERE session_id = ?1 AND id = substr(e.turn_id, 6))
          WHEN turn_id IS NULL THEN true
          ELSE NOT EXISTS (SELECT 1 FROM turns WHERE session_id = ?1 AND id = e.turn_id)
        END
      ORDER BY position LIMIT ${limit}`,
    args: [columnText(sessionId), after],
  } satisfies InStatement;
}
