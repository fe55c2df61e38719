import { MAX_TURN_ITEMS } from '@interlude/protocol/limits';
import { comparePositions, type Position } from '@interlude/protocol/position';
import type { EventEntry } from '@interlude/protocol/projections/event-entry';
import { foldTaskItems } from '@interlude/protocol/projections/transcript';
import type { Item, Task, TaskDetail, TaskList } from '@interlude/protocol/read-models';
import { markRedacted } from '@interlude/protocol/redaction/redact-model';
import type { Row } from '@libsql/client';
import { TASK_ROW, taskFromRow } from '@/db/read-model-rows';
import { sessionsIn } from '@/db/scope-sql';
import { columnText } from '@/db/table-rows';
import { Yielder } from '@/db/yield-to-loop';
import type { Sight } from '@/lib/server/access/sight';
import type { RunAsked } from './read-task-output';
import { asRead, type Query, query, readTogether } from './read-together';
import { ShownEntries, withoutSecrets } from './shown-entries';
import { ENTRY_COLUMNS } from './turn-row';

const COLUMNS = TASK_ROW.columns();
/** Most tasks that are listed. */
const MAX_TASKS_LISTED = 1_000;
const READ_AT_ONCE = 100;
/** Most events of a task that are read for what its subagent said and did. */
const MAX_TASK_EVENTS = 2 * MAX_TURN_ITEMS;
const FOLDED_AT_ONCE = 500;

/**
 * The tasks of a session, in the order they began: those that still run, and the newest of the others. If too many run,
 * the newest of those.
 *
 * @returns null when there is no such session
 */
export async function readTasks(sight: Sight, sessionId: string): Promise<TaskList | null> {
  const id = columnText(sessionId);
  const which = sessionsIn(sight.scope, 'id');
  const few = await readTogether(sight, [
    ...listed(id, which),
    query(taskFromRow, `SELECT ${COLUMNS} FROM tasks WHERE session_id = ?1 AND (${COUNT}) <= ${READ_AT_ONCE}`, id),
  ]);
  const [session, , , [count = 0], all] = few.found;
  if (session.length === 0) return null;
  if (count <= READ_AT_ONCE) return listOf(few.position, count, all);
  const snapshot = await sight.reader.transaction('read');
  try {
    const { position, found } = await readTogether({ ...sight, reader: snapshot }, listed(id, which));
    const [, running, newest, [count = 0]] = found;
    const positions = [...new Set([...running, ...newest])].slice(0, MAX_TASKS_LISTED);
    const pace = new Yielder();
    const tasks: Task[] = [];
    for (let from = 0; from < positions.length; from += READ_AT_ONCE) {
      const { rows } = await snapshot.execute({
        sql: `SELECT ${TASK_ROW.columns('t')} FROM json_each(?2) AS wanted CROSS JOIN tasks AS t
              ON session_id = ?1 AND position = wanted.value`,
        args: [id, JSON.stringify(positions.slice(from, from + READ_AT_ONCE))],
      });
      tasks.push(...rows.map(taskFromRow));
      await pace.rest();
    }
    return listOf(position, count, tasks);
  } finally {
    snapshot.close();
  }
}

const COUNT = 'SELECT count(*) AS count FROM tasks WHERE session_id = ?1';

/** Whether the session exists, which of its tasks run and which are the newest, by position, and how many it has. */
function listed(id: string, which: string): [Query<Row>, Query<number>, Query<number>, Query<number>] {
  const position = (row: Row) => Number(row.position);
  const newest = `ORDER BY position DESC LIMIT ${MAX_TASKS_LISTED}`;
  return [
    query(asRead, `SELECT 1 FROM sessions WHERE id = ? AND ${which}`, id),
    query(position, `SELECT position FROM tasks WHERE session_id = ? AND status = 'running' ${newest}`, id),
    query(position, `SELECT position FROM tasks WHERE session_id = ? ${newest}`, id),
    query((row) => Number(row.count), COUNT, id),
  ];
}

function listOf(position: Position, count: number, tasks: Task[]): TaskList {
  const omitted = count - tasks.length;
  const inOrder = tasks.sort((a, b) => comparePositions(a.position, b.position));
  return { position, tasks: inOrder, ...(omitted > 0 ? { omitted } : {}) };
}

/**
 * One task with what its subagent said and did. If the agent used the id again, the newest run unless `runId` names
 * another, with what was said between the beginning of that run and of the next.
 *
 * @returns null when there is no such task
 */
export async function readTask(
  sight: Sight,
  sessionId: string,
  taskId: string,
  { runId, position: askedAt }: RunAsked = { runId: null, position: null },
): Promise<TaskDetail | null> {
  const session = columnText(sessionId);
  const { position, found } = await readTogether(sight, [
    runsOf(session, taskId, sessionsIn(sight.scope, 'session_id')),
    // the newest of it: bounded like a turn
    query(
      asRead,
      `SELECT ${ENTRY_COLUMNS} FROM events WHERE session_id = ? AND turn_id = ? ORDER BY position DESC LIMIT ?`,
      session,
      columnText(`task:${taskId}`),
      MAX_TASK_EVENTS,
    ),
  ]);
  const [runs, events] = found;
  const isAsked = (run: Task) =>
    (runId === null || run.runId === runId) && (askedAt === null || run.position === String(askedAt));
  const at = runId === null && askedAt === null ? runs.length - 1 : runs.findIndex(isAsked);
  const task = runs[at];
  if (task === undefined) return null;
  const pace = new Yielder();
  const shown = new ShownEntries(sight, events.length < MAX_TASK_EVENTS);
  const entries: EventEntry[] = [];
  await shown.each(events.toReversed(), pace, (entry) => entries.push(entry));
  const ofRun = entries.filter((entry) => isOfRun(runs, at, entry.position));
  let items: Item[] = [];
  for (let from = 0; from < ofRun.length; from += FOLDED_AT_ONCE) {
    items = foldTaskItems(items, taskId, ofRun.slice(from, from + FOLDED_AT_ONCE));
    await pace.rest();
  }
  const detail = await withoutSecrets(sight, { items }, { position, task }, pace);
  return sight.redacts ? markRedacted({ ...detail, redacted: (detail.redacted ?? 0) + shown.tally.redacted }) : detail;
}

/** The runs of a task, in the order in which they began. */
function runsOf(session: string, taskId: string, which: string): Query<Task> {
  const sql = `SELECT ${COLUMNS} FROM tasks WHERE session_id = ? AND id = ? AND ${which} ORDER BY position`;
  return query(taskFromRow, sql, session, columnText(taskId));
}

/** What came before the first run belongs to it: a subagent may speak before its start is told. */
function isOfRun(runs: readonly Task[], at: number, position: string): boolean {
  const [run, next] = [runs[at], runs[at + 1]];
  if (at > 0 && run !== undefined && comparePositions(position, run.position) < 0) return false;
  return next === undefined || comparePositions(position, next.position) < 0;
}
