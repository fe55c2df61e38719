import type { CommandAnswer, EndSession, Interrupt, StopTask, WakeTask } from '@interlude/protocol/commands';
import { cutText } from '@interlude/protocol/cut-text';
import { type Position, positionFromNumber, positionToNumber } from '@interlude/protocol/position';
import type { TaskStatus } from '@interlude/protocol/read-models';
import { tasks } from '@/db/schema';
import { columnText, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import type { Asked } from '@/lib/server/access/asked';
import { askSession } from './ask-session';
import type { CommandServer } from './command-hub';
import { conflict, missing } from './refusals';
import type { WritableSession } from './writable-session';

/** What operators ask of an agent besides messages and the answers to its requests. */

/**
 * `POST /sessions/:id/interrupt`
 * @throws AppError `conflict`: `turn_ended` where another turn is open than was meant, or none; `no_open_turn`
 */
export async function postInterrupt(
  { ids: { sessionId }, body: { clientId, ...asked } }: Asked<'sessionId', { body: Interrupt }>,
  server: CommandServer,
): Promise<CommandAnswer> {
  return askSession(server, {
    sessionId,
    clientId,
    ask: { type: 'interrupt', ...asked },
    prepare: async (_transaction, session) => {
      const turnId = openTurn(session, asked.turnId);
      return { body: { turnId }, repeats: (earlier) => earlier.turnId === turnId };
    },
  });
}

/** The turn an interrupt ends: what its sender saw, and nothing that began since. */
function openTurn({ openTurnId }: WritableSession, meant: string | undefined): string {
  if (openTurnId !== null && (meant === undefined || columnText(meant) === columnText(openTurnId))) return openTurnId;
  if (meant === undefined) throw conflict('no_open_turn', 'No turn is open: there is nothing to interrupt.');
  const now = openTurnId === null ? 'none is open now' : 'another one is open now; read what it does before you end it';
  throw conflict('turn_ended', `The turn you meant has ended, and ${now}.`, { openTurnId });
}

/**
 * `POST /sessions/:id/end`
 * @throws AppError `conflict`: `session_ended`
 */
export async function postSessionEnd(
  { ids: { sessionId }, body: { clientId } }: Asked<'sessionId', { body: EndSession }>,
  server: CommandServer,
): Promise<CommandAnswer> {
  return askSession(server, {
    sessionId,
    clientId,
    ask: { type: 'session.end' },
    prepare: async () => ({ body: {}, repeats: () => true }),
  });
}

/** `POST /sessions/:id/tasks/:taskId/stop` */
export async function postTaskStop(
  { ids: { sessionId, taskId }, body: { clientId, ...asked } }: Asked<'sessionId' | 'taskId', { body: StopTask }>,
  server: CommandServer,
): Promise<CommandAnswer> {
  return askSession(server, {
    sessionId,
    clientId,
    ask: { type: 'task.stop', taskId, ...asked },
    prepare: async (transaction, session) => {
      const { status, position: _, ...running } = await findTask(transaction, session.id, taskId, asked);
      if (status !== 'running') {
        throw conflict('task_ended', `The task has ended (${status}): there is nothing to stop.`, { status });
      }
      const body = { taskId, ...running };
      return { body, repeats: (earlier) => earlier.taskId === taskId && earlier.runId === body.runId };
    },
  });
}

/**
 * `POST /sessions/:id/tasks/:taskId/wake`: begins a turn with the result of a task that has ended.
 * @throws AppError `conflict`: `task_running` where it has not
 */
export async function postTaskWake(
  { ids: { sessionId, taskId }, body: { clientId, ...asked } }: Asked<'sessionId' | 'taskId', { body: WakeTask }>,
  server: CommandServer,
): Promise<CommandAnswer> {
  return askSession(server, {
    sessionId,
    clientId,
    ask: { type: 'task.wake', taskId, ...asked },
    prepare: async (transaction, session) => {
      const { position: _, ...ended } = await findEnded(transaction, session.id, taskId, asked);
      const body = { taskId, ...ended };
      return { body, repeats: (earlier) => earlier.taskId === taskId && earlier.runId === body.runId };
    },
  });
}

/**
 * A task whose result the agent can be woken with.
 * @throws AppError `not_found`; `conflict`: `task_running`
 */
export async function findEnded(
  transaction: WriteTransaction,
  sessionId: string,
  taskId: string,
  run: Run,
): Promise<Omit<FoundTask, 'status'>> {
  const { status, ...ended } = await findTask(transaction, sessionId, taskId, run);
  if (status !== 'running') return ended;
  throw conflict('task_running', 'The task still runs: there is no result to wake the agent with.', { status });
}

/** As much of a description as one line of a transcript shows. */
const MAX_DESCRIPTION = 200;
const TASK = shapeOf(tasks, 'runId', 'status', 'position', 'body');

/** Which run of a task; by default the newest. */
interface Run {
  runId?: string | undefined;
  position?: Position | undefined;
}

interface FoundTask {
  status: TaskStatus;
  runId?: string;
  description?: string;
  position: Position;
}

/** @returns how it stands with the run that is meant, its name if the agent names its runs, and what the task is called */
async function findTask(
  transaction: WriteTransaction,
  sessionId: string,
  taskId: string,
  run: Run,
): Promise<FoundTask> {
  const runId = run.runId ?? null;
  const at = run.position === undefined ? null : positionToNumber(run.position);
  const found = await transaction.execute({
    sql: `SELECT ${TASK.columns()} FROM tasks WHERE session_id = ? AND id = ? AND ifnull(run_id = ?, ? IS NULL)
          AND position = ifnull(?, position) ORDER BY position DESC LIMIT 1`,
    args: [sessionId, columnText(taskId), runId, runId, at],
  });
  const task = TASK.first(found);
  if (task === undefined) {
    throw missing('task', taskId, `GET /api/v1/sessions/${encodeURIComponent(sessionId)}/tasks lists them.`);
  }
  const { status, body } = task;
  return {
    status,
    position: positionFromNumber(task.position),
    ...(task.runId === null ? {} : { runId: task.runId }),
    ...(body.description ? { description: cutText(body.description, MAX_DESCRIPTION) } : {}),
  };
}
