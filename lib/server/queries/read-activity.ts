import { MINUTE_MS } from '@interlude/protocol/limits';
import { type Activity, durationSteps, MAX_MEASURED } from '@interlude/protocol/read-models';
import { agentsIn, sessionsIn } from '@/db/scope-sql';
import type { ReadScope } from '@/lib/server/access/request-context';
import { query, readSnapshot } from './read-snapshot';

/** Events per minute, and the durations of the newest tasks and replies. */
export async function readActivity(view: ReadScope, now: number, minutes: number): Promise<Activity> {
  const where = sessionsIn(view.scope, 'session_id');
  const first = Math.floor(now / MINUTE_MS) - minutes + 1;
  const { position, found } = await readSnapshot<[{ minute: number; events: number }, number, number]>(view, [
    query(
      (row) => ({ minute: Number(row.minute), events: Number(row.events) }),
      `SELECT minute, sum(events) AS events FROM activity
        WHERE minute >= ? AND minute < ? AND ${agentsIn(view.scope)} GROUP BY minute`,
      first,
      first + minutes,
    ),
    query(
      (row) => Number(row.ms),
      // In the server's order, because a runner's clock may be ahead.
      `SELECT ended_at - started_at AS ms FROM tasks INDEXED BY tasks_by_change
        WHERE status <> 'running' AND ended_at IS NOT NULL AND ${where} ORDER BY updated_position DESC LIMIT ?`,
      MAX_MEASURED,
    ),
    query(
      (row) => Number(row.ms),
      // Both times are on the server's clock.
      `SELECT (body->>'$.settledAt') - owed_since AS ms FROM obligations INDEXED BY obligations_answered
        WHERE state = 'answered' AND ${where} ORDER BY updated_position DESC LIMIT ?`,
      MAX_MEASURED,
    ),
  ]);
  const [counted, tasks, answers] = found;
  const events = Array.from({ length: minutes }, () => 0);
  for (const { minute, events: count } of counted) events[minute - first] = count;
  return {
    position,
    at: now,
    since: first * MINUTE_MS,
    events,
    tasks: durationSteps(tasks),
    answers: durationSteps(answers),
  };
}
