import type { Database } from '@/db/client';
import { columnText } from '@/db/column-text';
import { sessionFromRow } from '@/db/fleet-rows';
import { SESSION_STATES, type SessionDetail, type SessionList } from '@/lib/protocol/read-models';
import { COUNTER, counterOf } from './counter';

const COLUMNS = 'id, agent_id, state, last_event_at, body, updated_position';

/** What needs nobody any more is listed up to this many; unless asked for less, and in the page's own markup. */
export const DONE_LISTED = 1_000;
export const DONE_IN_PAGE = 100;

const OPEN_STATES = JSON.stringify(SESSION_STATES.filter((state) => state !== 'done'));

/**
 * Every session that is not done and the newest `done` of those that are, the one with the newest event first.
 * `hasMore` tells that older ones were left out.
 */
export async function readSessions(database: Database, done = DONE_LISTED): Promise<SessionList> {
  const [counter, open, ended] = await database.reader.batch(
    [
      COUNTER,
      {
        sql: `SELECT ${COLUMNS} FROM sessions WHERE state IN (SELECT value FROM json_each(?))`,
        args: [OPEN_STATES],
      },
      {
        sql: `SELECT ${COLUMNS} FROM sessions WHERE state = 'done' ORDER BY last_event_at DESC, id DESC LIMIT ?`,
        args: [done + 1],
      },
    ],
    'read',
  );
  const older = ended?.rows ?? [];
  const sessions = [...(open?.rows ?? []), ...older.slice(0, done)].map(sessionFromRow);
  sessions.sort((a, b) => b.lastEventAt - a.lastEventAt || (a.id < b.id ? 1 : -1));
  return { position: counterOf(counter), sessions, hasMore: older.length > done };
}

/** @returns null when there is no such session */
export async function readSession(database: Database, sessionId: string): Promise<SessionDetail | null> {
  const [counter, sessions] = await database.reader.batch(
    [COUNTER, { sql: `SELECT ${COLUMNS} FROM sessions WHERE id = ?`, args: [columnText(sessionId)] }],
    'read',
  );
  const row = sessions?.rows[0];
  return row === undefined ? null : { position: counterOf(counter), session: sessionFromRow(row) };
}
