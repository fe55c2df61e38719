import type {
  CommandBodies,
  CommandResponse,
  EndSession,
  Interrupt,
  MessageResponse,
  Sending,
  SendMessage,
  TaskRun,
} from '@interlude/protocol/commands';
import { AppError } from '@interlude/protocol/errors';
import { type Position, positionFromNumber, positionToNumber } from '@interlude/protocol/position';
import type { TaskStatus } from '@interlude/protocol/read-models';
import { truncateText } from '@interlude/protocol/text';
import type { Reader } from '@/db/reader';
import { tasks } from '@/db/schema';
import { columnText, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { notFound, operatorName } from '@/lib/server/access/principal';
import type { RequestContext } from '@/lib/server/access/request-context';
import { acceptCommand, type CommandServer, conflict, type WritableSession } from './accept-command';
import { nameAttachments } from './attachments';

/**
 * `POST /sessions/:id/messages`
 *
 * @returns once the message is on disk; idempotent per `clientId`
 * @throws AppError `not_found` for the session, `replyTo` or a task of `results`; `conflict`, also for a running task;
 *   `invalid_argument` for an attachment that the session does not have
 */
export async function postMessage(
  {
    ids: { sessionId },
    body: { text, clientId, replyTo, attachments = [], results },
    principal,
    digests,
  }: RequestContext<'sessionId', { body: SendMessage }>,
  server: CommandServer,
): Promise<MessageResponse> {
  const repliesToNothing = replyTo !== undefined && !(await hasMessage(server.database.reader, sessionId, replyTo));
  const { answer: response, sending } = await acceptCommand(server, {
    sessionId,
    clientId,
    // Absent fields stay out of the digest, which must equal that of messages stored before these fields existed.
    request: {
      type: 'message',
      text,
      replyTo,
      ...(attachments.length === 0 ? {} : { attachments }),
      ...(results === undefined ? {} : { results }),
    },
    bytes: text.length * 4,
    prepare: async (transaction, { id, sending }, messageId) => {
      if (repliesToNothing) {
        throw new AppError(
          'not_found',
          `This session has no message ${JSON.stringify(replyTo)}. Reply to a message of its transcript, or omit replyTo.`,
        );
      }
      const named = await nameAttachments(transaction, id, attachments, digests);
      const carried: CommandBodies['message']['results'] = [];
      for (const { taskId, ...run } of results ?? []) {
        const { runId, position } = await findEndedTask(transaction, id, taskId, run);
        carried.push({ taskId, ...(runId === undefined ? {} : { runId }), position });
      }
      const body = {
        messageId,
        text,
        from: { kind: 'person' as const, id: operatorName(principal) },
        ...(replyTo === undefined ? {} : { replyTo }),
        ...(named.length === 0 ? {} : { attachments: named }),
        ...(carried.length === 0 ? {} : { results: carried }),
      };
      return { body, sending };
    },
  });
  return { messageId: response.commandId, delivery: DELIVERY[response.state], sending: sending ?? ALLOWED };
}

/** For messages stored by versions without `sending`. */
const ALLOWED: Sending = { kind: 'allowed', reason: null };

const DELIVERY = {
  queued: 'queued',
  delivered: 'delivered',
  done: 'seen',
  failed: 'failed',
  expired: 'failed',
} as const;

/** Rows per read, which takes a few milliseconds. Other requests run between reads. */
const PAGE_ROWS = 5_000;

/** Reads the log backwards, because most replies are to new messages. */
async function hasMessage(reader: Reader, sessionId: string, messageId: string): Promise<boolean> {
  const [session, message] = [columnText(sessionId), columnText(messageId)];
  let before = Number.MAX_SAFE_INTEGER;
  for (;;) {
    const { rows } = await reader.execute({
      sql: `SELECT max(entity_id = ? AND substr(type, 1, 13) = 'TEXT_MESSAGE_') AS is_found, min(position) AS oldest
            FROM (SELECT position, entity_id, type FROM events WHERE session_id = ? AND position < ?
                  ORDER BY position DESC LIMIT ?)`,
      args: [message, session, before, PAGE_ROWS],
    });
    if (Number(rows[0]?.is_found) === 1) return true;
    if (rows[0]?.oldest === null) return false;
    before = Number(rows[0]?.oldest);
  }
}

/**
 * `POST /sessions/:id/interrupt`
 * @throws AppError `conflict`: `turn_ended` unless the open turn is the requested one; `no_open_turn`
 */
export async function postInterrupt(
  { ids: { sessionId }, body: { clientId, ...fields } }: RequestContext<'sessionId', { body: Interrupt }>,
  server: CommandServer,
): Promise<CommandResponse> {
  const { answer: response } = await acceptCommand(server, {
    sessionId,
    clientId,
    request: { type: 'interrupt', ...fields },
    prepare: async (_transaction, session) => {
      const turnId = turnToInterrupt(session, fields.turnId);
      return { body: { turnId }, repeats: (earlier) => earlier.turnId === turnId };
    },
  });
  return response;
}

/** Returns the turn that the sender saw, never one that began since. */
function turnToInterrupt({ openTurnId }: WritableSession, turnId: string | undefined): string {
  if (openTurnId !== null && (turnId === undefined || columnText(turnId) === columnText(openTurnId))) return openTurnId;
  if (turnId === undefined) throw conflict('no_open_turn', 'No turn is open, so there is nothing to interrupt.');
  const now = openTurnId === null ? 'none is open now' : 'another one is open; review it before you interrupt it';
  throw conflict('turn_ended', `The turn to interrupt has already ended, and ${now}.`, { openTurnId });
}

/** `POST /sessions/:id/end` */
export async function postSessionEnd(
  { ids: { sessionId }, body: { clientId } }: RequestContext<'sessionId', { body: EndSession }>,
  server: CommandServer,
): Promise<CommandResponse> {
  const prepare = async () => ({ body: {}, repeats: () => true });
  return (await acceptCommand(server, { sessionId, clientId, request: { type: 'session.end' }, prepare })).answer;
}

/**
 * `POST /sessions/:id/tasks/:taskId/stop`
 * @throws AppError `not_found`; `conflict`: `task_ended`
 */
export const postTaskStop = taskCommand('task.stop', async (transaction, sessionId, taskId, run) => {
  const { status, ...running } = await findTask(transaction, sessionId, taskId, run);
  if (status === 'running') return running;
  throw conflict('task_ended', `The task has ended (${status}), so there is nothing to stop.`, { status });
});

/**
 * `POST /sessions/:id/tasks/:taskId/wake`: starts a turn with the result of an ended task.
 * @throws AppError `not_found`; `conflict`: `task_running`
 */
export const postTaskWake = taskCommand('task.wake', findEndedTask);

function taskCommand(type: 'task.stop' | 'task.wake', find: typeof findEndedTask) {
  return async (
    {
      ids: { sessionId, taskId },
      body: { clientId, ...run },
    }: RequestContext<'sessionId' | 'taskId', { body: TaskRun }>,
    server: CommandServer,
  ): Promise<CommandResponse> => {
    const { answer: response } = await acceptCommand(server, {
      sessionId,
      clientId,
      request: { type, taskId, ...run },
      prepare: async (transaction, session) => {
        const { position: _, ...found } = await find(transaction, session.id, taskId, run);
        const body = { taskId, ...found };
        return { body, repeats: (earlier) => earlier.taskId === taskId && earlier.runId === body.runId };
      },
    });
    return response;
  };
}

async function findEndedTask(
  transaction: WriteTransaction,
  sessionId: string,
  taskId: string,
  run: Run,
): Promise<Omit<FoundTask, 'status'>> {
  const { status, ...ended } = await findTask(transaction, sessionId, taskId, run);
  if (status !== 'running') return ended;
  throw conflict('task_running', 'The task is still running, so it has no result yet.', { status });
}

/** Maximum characters, about one line of the transcript. */
const MAX_DESCRIPTION = 200;
const TASK = shapeOf(tasks, 'runId', 'status', 'position', 'body');

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

/** Finds one run of a task; by default the newest. */
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
  if (task === undefined) throw notFound('task', taskId, `/sessions/${encodeURIComponent(sessionId)}/tasks`);
  const { status, body } = task;
  return {
    status,
    position: positionFromNumber(task.position),
    ...(task.runId === null ? {} : { runId: task.runId }),
    ...(body.description ? { description: truncateText(body.description, MAX_DESCRIPTION) } : {}),
  };
}
