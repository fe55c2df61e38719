import { columnText } from '@/db/column-text';
import type { Reader } from '@/db/reader';

/** So many rows are looked at before other requests get their turn: a few milliseconds. */
const PAGE_ROWS = 5_000;

/**
 * Whether somebody said this message in the session. What people reply to is mostly new, so the log is read from its
 * end; only a message that nobody said has all of it read.
 */
export async function isSaid(reader: Reader, sessionId: string, messageId: string): Promise<boolean> {
  const [session, message] = [columnText(sessionId), columnText(messageId)];
  let before = Number.MAX_SAFE_INTEGER;
  for (;;) {
    const { rows } = await reader.execute({
      sql: `SELECT max(entity_id = ? AND substr(type, 1, 13) = 'TEXT_MESSAGE_') AS is_said, min(position) AS oldest
            FROM (SELECT position, entity_id, type FROM events WHERE session_id = ? AND position < ?
                  ORDER BY position DESC LIMIT ?)`,
      args: [message, session, before, PAGE_ROWS],
    });
    if (Number(rows[0]?.is_said) === 1) return true;
    if (rows[0]?.oldest === null) return false;
    before = Number(rows[0]?.oldest);
  }
}
