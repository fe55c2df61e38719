import type { InStatement } from '@libsql/client';
import type { Database } from '@/db/client';
import { columnText } from '@/db/column-text';
import { TASK_ROW, taskFromRow } from '@/db/fleet-rows';
import { Pace } from '@/db/next-turn';
import type { ResultRows } from '@/db/reader';
import { foldTaskItems } from '@/lib/projections/transcript';
import { MAX_TURN_ITEMS } from '@/lib/protocol/limits';
import { comparePositions } from '@/lib/protocol/position';
import type { Item, Task, TaskDetail, TaskList } from '@/lib/protocol/read-models';
import { COUNTER, counterOf } from './counter';
import { ENTRY_COLUMNS, entryFromRow } from './turn-row';

const COLUMNS = TASK_ROW.columns();
/** Most tasks that are listed. */
const MAX_TASKS_LISTED = 1_000;
const READ_AT_ONCE = 100;
/** Most events of a task that are read for what its subagent said and did. */
const MAX_TASK_EVENTS = 2 * MAX_TURN_ITEMS;
const FOLDED_AT_ONCE = 500;
const SESSION = 'SELECT 1 FROM sessions WHERE id = ?';

/**
 * The tasks of a session, in the order they began: those that still run, and of the others the newest. Beyond the most
 * that are listed, of those that run the newest, too.
 *
 * @returns null when there is no such session
 */
export async function readTasks(database: Database, sessionId: string): Promise<TaskList | null> {
  const args = [columnText(sessionId)];
  const few = await database.reader.batch(
    [
      ...listStatements(args),
      { sql: `SELECT ${COLUMNS} FROM tasks WHERE session_id = ?1 AND (${COUNT}) <= ${READ_AT_ONCE}`, args },
    ],
    'read',
  );
  if (countIn(few) <= READ_AT_ONCE) return listOf(few, (few[5]?.rows ?? []).map(taskFromRow));
  const snapshot = await database.reader.transaction('read');
  try {
    const found = await snapshot.batch(listStatements(args));
    const positions = [...(found[2]?.rows ?? []), ...(found[3]?.rows ?? [])].map(({ position }) => Number(position));
    const listed = [...new Set(positions)].slice(0, MAX_TASKS_LISTED);
    const pace = new Pace();
    const tasks: Task[] = [];
    for (let from = 0; from < listed.length; from += READ_AT_ONCE) {
      const { rows } = await snapshot.execute({
        sql: `SELECT ${COLUMNS} FROM json_each(?2) AS wanted CROSS JOIN tasks
              ON session_id = ?1 AND position = wanted.value`,
        args: [...args, JSON.stringify(listed.slice(from, from + READ_AT_ONCE))],
      });
      tasks.push(...rows.map(taskFromRow));
      await pace.rest();
    }
    return listOf(found, tasks);
  } finally {
    snapshot.close();
  }
}

const COUNT = 'SELECT count(*) AS count FROM tasks WHERE session_id = ?1';

function listStatements(args: string[]): InStatement[] {
  const newest = `ORDER BY position DESC LIMIT ${MAX_TASKS_LISTED}`;
  return [
    COUNTER,
    { sql: SESSION, args },
    { sql: `SELECT position FROM tasks WHERE session_id = ? AND status = 'running' ${newest}`, args },
    { sql: `SELECT position FROM tasks WHERE session_id = ? ${newest}`, args },
    { sql: COUNT, args },
  ];
}

function countIn(results: readonly ResultRows[]): number {
  return Number(results[4]?.rows[0]?.count ?? 0);
}

function listOf(results: readonly ResultRows[], tasks: Task[]): TaskList | null {
  const [counter, session] = results;
  if (session?.rows.length === 0) return null;
  const omitted = countIn(results) - tasks.length;
  const inOrder = tasks.sort((a, b) => comparePositions(a.position, b.position));
  return { position: counterOf(counter), tasks: inOrder, ...(omitted > 0 ? { omitted } : {}) };
}

/**
 * One task with what its subagent said and did. Where the agent re-used the id, the newest run unless `runId` names
 * another, with what was said between that run's beginning and the next one's.
 *
 * @returns null when there is no such task
 */
export async function readTask(
  database: Database,
  sessionId: string,
  taskId: string,
  runId: string | null = null,
): Promise<TaskDetail | null> {
  const session = columnText(sessionId);
  const [counter, rows, events] = await database.reader.batch(
    [
      COUNTER,
      {
        sql: `SELECT ${COLUMNS} FROM tasks WHERE session_id = ? AND id = ? ORDER BY position`,
        args: [session, columnText(taskId)],
      },
      {
        // the newest of it: what a subagent did is bounded as a turn is
        sql: `SELECT ${ENTRY_COLUMNS} FROM events WHERE session_id = ? AND turn_id = ?
          ORDER BY position DESC LIMIT ${MAX_TASK_EVENTS}`,
        args: [session, columnText(`task:${taskId}`)],
      },
    ],
    'read',
  );
  const runs = (rows?.rows ?? []).map(taskFromRow);
  const at = runId === null ? runs.length - 1 : runs.findIndex((run) => run.runId === runId);
  const task = runs[at];
  if (task === undefined) return null;
  const pace = new Pace();
  const entries = await pace.map((events?.rows ?? []).toReversed(), entryFromRow);
  const ofRun = entries.filter((entry) => isOfRun(runs, at, entry.position));
  let items: Item[] = [];
  for (let from = 0; from < ofRun.length; from += FOLDED_AT_ONCE) {
    items = foldTaskItems(items, taskId, ofRun.slice(from, from + FOLDED_AT_ONCE));
    await pace.rest();
  }
  return { position: counterOf(counter), task, items };
}

/** What came before the first run began is the first run's: a subagent may speak before its start is told. */
function isOfRun(runs: readonly Task[], at: number, position: string): boolean {
  const [run, next] = [runs[at], runs[at + 1]];
  if (at > 0 && run !== undefined && comparePositions(position, run.position) < 0) return false;
  return next === undefined || comparePositions(position, next.position) < 0;
}
