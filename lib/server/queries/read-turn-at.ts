import type { TurnAt } from '@interlude/protocol/read-models';
import { tasks, turns } from '@/db/schema';
import { sessionsIn } from '@/db/scope-sql';
import { columnText, shapeOf } from '@/db/table-rows';
import type { Sight } from '@/lib/server/access/sight';
import { asRead, query, readTogether } from './read-together';

const TURN = shapeOf(turns, 'id', 'endedAt');
const TASK = shapeOf(tasks, 'id');

/** How many turns to look back for one that still ran after later ones had begun, if an agent lets turns overlap. */
const MOST_TURNS = 32;
/** Most tasks that are named. */
const MOST_TASKS = 64;

/**
 * What a session's agent did at a time of its own clock: the turn that ran then, or else the last one that had begun,
 * and the tasks that ran, last begun first. What stands outside any turn is left out: it is not work, and some of it is
 * on the server's clock. Both answers are ranges of an index that covers the query.
 *
 * @returns null when there is no such session
 */
export async function readTurnAt(sight: Sight, sessionId: string, at: number): Promise<TurnAt | null> {
  const session = columnText(sessionId);
  const { position, found } = await readTogether(sight, [
    query(asRead, `SELECT 1 FROM sessions WHERE id = ? AND ${sessionsIn(sight.scope, 'id')}`, session),
    query(
      TURN.read,
      `SELECT ${TURN.columns()} FROM turns WHERE session_id = ? AND kind <> 'none' AND started_at <= ?
        ORDER BY started_at DESC, position DESC LIMIT ?`,
      session,
      at,
      MOST_TURNS,
    ),
    query(
      TASK.read,
      `SELECT ${TASK.columns()} FROM tasks WHERE session_id = ?1 AND started_at <= ?2 AND ifnull(ended_at, ?2) >= ?2
        ORDER BY started_at DESC LIMIT ?3`,
      session,
      at,
      MOST_TASKS,
    ),
  ]);
  const [known, begun, ran] = found;
  if (known.length === 0) return null;
  const running = begun.find(({ endedAt }) => endedAt === null || endedAt >= at);
  const turn = running ?? begun[0];
  return {
    position,
    turnId: turn?.id ?? null,
    running: running !== undefined,
    taskIds: ran.map(({ id }) => id),
  };
}
