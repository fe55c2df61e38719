import type { Database } from '@/db/client';
import { columnText } from '@/db/column-text';
import type { TurnAt } from '@/lib/protocol/read-models';
import { COUNTER, counterOf } from './counter';

/** How far back a turn is looked for that still ran when later ones had begun, where an agent lets them overlap. */
const MOST_TURNS = 32;
/** Most tasks that are named. */
const MOST_TASKS = 64;

/**
 * What a session's agent did at a time of its own clock: the turn that ran then, else the last one that had begun, and
 * the tasks that ran, last begun first. What stands outside any turn is no work, and part of it is told by the server's
 * clock: it is left out. Both answers are ranges of an index, which holds all they ask for.
 *
 * @returns null when there is no such session
 */
export async function readTurnAt(database: Database, sessionId: string, at: number): Promise<TurnAt | null> {
  const session = columnText(sessionId);
  const [counter, known, turns, tasks] = await database.reader.batch(
    [
      COUNTER,
      { sql: 'SELECT 1 FROM sessions WHERE id = ?', args: [session] },
      {
        sql: `SELECT id, ended_at FROM turns WHERE session_id = ? AND kind <> 'none' AND started_at <= ?
          ORDER BY started_at DESC, position DESC LIMIT ?`,
        args: [session, at, MOST_TURNS],
      },
      {
        sql: `SELECT id FROM tasks WHERE session_id = ?1 AND started_at <= ?2 AND ifnull(ended_at, ?2) >= ?2
          ORDER BY started_at DESC LIMIT ?3`,
        args: [session, at, MOST_TASKS],
      },
    ],
    'read',
  );
  if (known?.rows.length === 0) return null;
  const begun = turns?.rows ?? [];
  const running = begun.find((row) => row.ended_at === null || Number(row.ended_at) >= at);
  const turn = running ?? begun[0];
  return {
    position: counterOf(counter),
    turnId: turn === undefined ? null : String(turn.id),
    running: running !== undefined,
    taskIds: (tasks?.rows ?? []).map((row) => String(row.id)),
  };
}
