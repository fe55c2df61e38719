import { MAX_TURN_ITEMS } from '@interlude/protocol/limits';
import { comparePositions, type Position } from '@interlude/protocol/position';
import type { EventEntry } from '@interlude/protocol/projections/placement';
import { foldTaskItems } from '@interlude/protocol/projections/transcript';
import type { Item, Task, TaskDetail, TaskList, TaskOutputDetail } from '@interlude/protocol/read-models';
import { redactTaskOutput } from '@interlude/protocol/redaction/event-redactor';
import { markRedacted } from '@interlude/protocol/redaction/redact-model';
import { OutputDraft } from '@interlude/protocol/task-output';
import type { Row } from '@libsql/client';
import { TASK_ROW, taskFromRow } from '@/db/read-model-rows';
import { sessionsIn } from '@/db/scope-sql';
import { columnText } from '@/db/table-rows';
import { Yielder } from '@/db/yield-to-loop';
import type { ReadScope } from '@/lib/server/access/request-context';
import { type Query, query, rawRow, readSnapshot } from './read-snapshot';
import { ENTRY_COLUMNS, entryFromRow, RedactedEntries, withRedacted } from './read-turns';

const COLUMNS = TASK_ROW.columns();
const MAX_TASKS_LISTED = 1_000;
const READ_AT_ONCE = 100;
/** Maximum events of a task's subagent. */
const MAX_TASK_EVENTS = 2 * MAX_TURN_ITEMS;
const FOLDED_AT_ONCE = 500;

/**
 * A session's running tasks and its newest others, up to `limit` in all, in start order.
 *
 * @param options.named ids of tasks to list before the others; called only if the session has more than 100 tasks
 * @returns null for an unknown session
 */
export async function readTasks(
  view: ReadScope,
  sessionId: string,
  options: { limit?: number; named?: () => Promise<readonly string[]> } = {},
): Promise<TaskList | null> {
  const { limit = MAX_TASKS_LISTED, named } = options;
  const id = columnText(sessionId);
  const where = sessionsIn(view.scope, 'id');
  const few = await readSnapshot(view, [
    ...listed(id, where, limit),
    query(taskFromRow, `SELECT ${COLUMNS} FROM tasks WHERE session_id = ?1 AND (${COUNT}) <= ${READ_AT_ONCE}`, id),
  ]);
  const [session, , , [count = 0], all] = few.found;
  if (session.length === 0) return null;
  if (count <= READ_AT_ONCE) return listOf(few.position, count, all);
  const first = (await named?.()) ?? [];
  const snapshot = await view.reader.transaction('read');
  try {
    const { position, found } = await readSnapshot({ ...view, reader: snapshot }, [
      ...listed(id, where, limit),
      query(
        positionOf,
        `SELECT position FROM tasks WHERE session_id = ? AND id IN (SELECT value FROM json_each(?)) LIMIT ${limit}`,
        id,
        JSON.stringify(first.map(columnText)),
      ),
    ]);
    const [, running, newest, [count = 0], ofNamed] = found;
    const positions = [...new Set([...ofNamed, ...running, ...newest])].slice(0, limit);
    const yielder = new Yielder();
    const tasks: Task[] = [];
    for (let from = 0; from < positions.length; from += READ_AT_ONCE) {
      const { rows } = await snapshot.execute({
        sql: `SELECT ${TASK_ROW.columns('t')} FROM json_each(?2) AS wanted CROSS JOIN tasks AS t
              ON session_id = ?1 AND position = wanted.value`,
        args: [id, JSON.stringify(positions.slice(from, from + READ_AT_ONCE))],
      });
      tasks.push(...rows.map(taskFromRow));
      await yielder.yieldIfDue();
    }
    return listOf(position, count, tasks);
  } finally {
    snapshot.close();
  }
}

const COUNT = 'SELECT count(*) AS count FROM tasks WHERE session_id = ?1';

/** Reads the session's existence, its running and its newest tasks by position, and the total count. */
function listed(id: string, where: string, limit: number): [Query<Row>, Query<number>, Query<number>, Query<number>] {
  const newest = `ORDER BY position DESC LIMIT ${limit}`;
  return [
    query(rawRow, `SELECT 1 FROM sessions WHERE id = ? AND ${where}`, id),
    query(positionOf, `SELECT position FROM tasks WHERE session_id = ? AND status = 'running' ${newest}`, id),
    query(positionOf, `SELECT position FROM tasks WHERE session_id = ? ${newest}`, id),
    query((row) => Number(row.count), COUNT, id),
  ];
}

const positionOf = (row: Row) => Number(row.position);

function listOf(position: Position, count: number, tasks: Task[]): TaskList {
  const omitted = count - tasks.length;
  const inOrder = tasks.sort((a, b) => comparePositions(a.position, b.position));
  return { position, tasks: inOrder, ...(omitted > 0 ? { omitted } : {}) };
}

/**
 * One run of a task with its subagent's items, up to the start of the next run with the same id.
 *
 * @returns null for an unknown task
 */
export async function readTask(
  view: ReadScope,
  sessionId: string,
  taskId: string,
  { runId, position: wantedAt }: TaskRunQuery = { runId: null, position: null },
): Promise<TaskDetail | null> {
  const session = columnText(sessionId);
  const { position, found } = await readSnapshot(view, [
    runsOf(session, taskId, sessionsIn(view.scope, 'session_id')),
    // The newest events, with the same limits as a turn.
    query(
      rawRow,
      `SELECT ${ENTRY_COLUMNS} FROM events WHERE session_id = ? AND turn_id = ? ORDER BY position DESC LIMIT ?`,
      session,
      columnText(`task:${taskId}`),
      MAX_TASK_EVENTS,
    ),
  ]);
  const [runs, events] = found;
  const matches = (run: Task) =>
    (runId === null || run.runId === runId) && (wantedAt === null || run.position === String(wantedAt));
  const at = runId === null && wantedAt === null ? runs.length - 1 : runs.findIndex(matches);
  const task = runs[at];
  if (task === undefined) return null;
  const yielder = new Yielder();
  const shown = new RedactedEntries(view, events.length < MAX_TASK_EVENTS);
  const entries: EventEntry[] = [];
  await shown.each(events.toReversed(), yielder, (entry) => entries.push(entry));
  const ofRun = entries.filter((entry) => isOfRun(runs, at, entry.position));
  let items: Item[] = [];
  for (let from = 0; from < ofRun.length; from += FOLDED_AT_ONCE) {
    items = foldTaskItems(items, taskId, ofRun.slice(from, from + FOLDED_AT_ONCE));
    await yielder.yieldIfDue();
  }
  const detail = await withRedacted(view, { items }, { position, task }, yielder);
  return view.redacts ? markRedacted({ ...detail, redacted: (detail.redacted ?? 0) + shown.tally.redacted }) : detail;
}

function runsOf(session: string, taskId: string, where: string): Query<Task> {
  const sql = `SELECT ${COLUMNS} FROM tasks WHERE session_id = ? AND id = ? AND ${where} ORDER BY position`;
  return query(taskFromRow, sql, session, columnText(taskId));
}

/** Earlier events belong to the first run: a subagent may send events before its start is reported. */
function isOfRun(runs: readonly Task[], at: number, position: string): boolean {
  const [run, next] = [runs[at], runs[at + 1]];
  if (at > 0 && run !== undefined && comparePositions(position, run.position) < 0) return false;
  return next === undefined || comparePositions(position, next.position) < 0;
}

/** Selects a run by its position or id; by default the newest. */
export interface TaskRunQuery {
  runId: string | null;
  position: number | null;
}

/**
 * The stored output of a task's run.
 *
 * @returns null for an unknown task
 */
export async function readTaskOutput(
  view: ReadScope,
  sessionId: string,
  taskId: string,
  { runId, position: at }: TaskRunQuery,
): Promise<TaskOutputDetail | null> {
  const run = `${RUN} AND ${sessionsIn(view.scope, 'session_id')} ${NEWEST}`;
  const args = [columnText(sessionId), columnText(taskId), at, runId === null ? null : columnText(runId)];
  const { position, found } = await readSnapshot(view, [
    query((row) => String(row.position), run, ...args),
    query(
      rawRow,
      `SELECT ${ENTRY_COLUMNS} FROM events INDEXED BY events_of_output
       WHERE session_id = ?1 AND entity_id = CAST((${run}) AS TEXT) AND name = 'task:output' ORDER BY position`,
      ...args,
    ),
  ]);
  const [[taskPosition], rows] = found;
  if (taskPosition === undefined) return null;
  const draft = new OutputDraft(null);
  await new Yielder().each(rows, (row) => {
    const { event, occurredAt } = entryFromRow(row);
    draft.add(event, occurredAt);
  });
  const output = rows.length === 0 ? null : draft.result();
  if (!view.redacts || output === null) return { position, taskPosition, output };
  const tally = { redacted: 0 };
  const yielder = new Yielder();
  const redacted = await redactTaskOutput(output, tally, yielder.maybeYield);
  return markRedacted({ position, taskPosition, output: redacted, redacted: tally.redacted });
}

const RUN = `SELECT position FROM tasks WHERE session_id = ?1 AND id = ?2
  AND position = ifnull(?3, position) AND (?4 IS NULL OR run_id = ?4)`;
const NEWEST = 'ORDER BY position DESC LIMIT 1';
