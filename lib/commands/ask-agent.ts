import { columnText } from '@/db/column-text';
import type { WriteTransaction } from '@/db/write-queue';
import { authenticate } from '@/lib/access/authenticate';
import type { ServerContext } from '@/lib/access/server-context';
import { parseJson } from '@/lib/ingest/parse-json';
import { readBody } from '@/lib/ingest/read-body';
import {
  type AnsweredRequest,
  answerQuestionSchema,
  type CommandAnswer,
  type CommandBodies,
  type CommandType,
  decidePermissionSchema,
  interruptSchema,
  stopTaskSchema,
} from '@/lib/protocol/commands';
import { cutText } from '@/lib/protocol/cut-text';
import { AppError } from '@/lib/protocol/errors';
import type { Task } from '@/lib/protocol/read-models';
import { commandHubOf } from './command-hub';
import { findByClientId, findEffective, queueCommand, reused } from './queue-command';
import { parseInput, readInput } from './read-input';
import { type WritableSession, writableSession } from './writable-session';

/**
 * What operators ask of an agent besides messages. Every handler answers 202 with a CommandAnswer once the command is
 * on disk, and answers the same again for the same `clientId`.
 */

type Ids = Record<string, string>;
type Asked = { agentId: string; answer: CommandAnswer };

/** `POST /sessions/:id/interrupt` */
export async function postInterrupt(request: Request, server: ServerContext, ids: Ids): Promise<Response> {
  await authenticate(request, server);
  const { clientId } = await readInput(request, interruptSchema);
  return askSession(server, ids, 'interrupt', clientId, async () => ({ body: {}, about: null }));
}

/** `POST /sessions/:id/tasks/:taskId/stop` */
export async function postTaskStop(request: Request, server: ServerContext, ids: Ids): Promise<Response> {
  await authenticate(request, server);
  const { taskId = '' } = ids;
  const { runId, clientId } = await readInput(request, stopTaskSchema);
  return askSession(server, ids, 'task.stop', clientId, async (transaction, session) => {
    const running = await runningTask(transaction, session.id, taskId, runId ?? null);
    return { body: { taskId, ...running }, about: { path: '$.taskId', value: taskId } };
  });
}

/** `POST /sessions/:id/requests/:requestId`: `{"behavior", …}` for a permission, `{"answers"}` for a question. */
export async function postRequestAnswer(request: Request, server: ServerContext, ids: Ids): Promise<Response> {
  await authenticate(request, server);
  const { requestId = '' } = ids;
  const bytes = await readBody(request);
  const input = parseJson(bytes).value;
  const isAnswer = typeof input === 'object' && input !== null && 'answers' in input;
  if (isAnswer) {
    const { answers, digest, clientId } = parseInput(input, answerQuestionSchema);
    return askSession(server, ids, 'question.answer', clientId, async (transaction, session) => {
      const request = await requireOpen(transaction, session, requestId, 'question', digest);
      return { body: { ...request, answers }, about: null };
    });
  }
  const { clientId, digest, ...decision } = parseInput(input, decidePermissionSchema);
  return askSession(server, ids, 'permission.decision', clientId, async (transaction, session) => {
    const request = await requireOpen(transaction, session, requestId, 'permission', digest);
    return { body: { ...request, ...decision }, about: null };
  });
}

/**
 * @param prepare checks what is asked for and gives the command's body; `about` names what an earlier command, still
 *   on its way, would already be about: then that one is the answer
 */
async function askSession<Type extends CommandType>(
  server: ServerContext,
  { sessionId = '' }: Ids,
  type: Type,
  clientId: string | undefined,
  prepare: (
    transaction: WriteTransaction,
    session: WritableSession,
  ) => Promise<{ body: CommandBodies[Type]; about: { path: string; value: string } | null }>,
): Promise<Response> {
  const now = server.now();
  const asked = await server.database.writes.run(async (transaction): Promise<Asked> => {
    const again = clientId === undefined ? null : await findByClientId(transaction, sessionId, clientId);
    if (again !== null && again.command.type !== type) throw reused(again.command);
    if (again !== null) return { agentId: again.agentId, answer: { commandId: again.command.id, state: again.state } };
    const session = await writableSession(transaction, sessionId);
    const { agentId } = session;
    const { body, about } = await prepare(transaction, session);
    const repeats = type === 'interrupt' || about !== null;
    const pending = repeats ? await findEffective(transaction, agentId, session.id, type, about) : null;
    if (pending !== null) return { agentId, answer: { commandId: pending.command.id, state: pending.state } };
    const fields = { id: crypto.randomUUID(), agentId, sessionId: session.id, clientId: clientId ?? null, now };
    const command = await queueCommand(transaction, { ...fields, type, body });
    return { agentId, answer: { commandId: command.id, state: 'queued' } };
  });
  return answered(server, asked);
}

function answered(server: ServerContext, { agentId, answer }: Asked): Response {
  commandHubOf(server).wake(agentId);
  return Response.json(answer, { status: 202, headers: { 'cache-control': 'no-store' } });
}

/** As much of a description as one line of a transcript shows. */
const MAX_DESCRIPTION = 200;

/** @returns the run that is meant, absent where the agent does not name its runs, and what the task is called */
async function runningTask(
  transaction: WriteTransaction,
  sessionId: string,
  taskId: string,
  runId: string | null,
): Promise<{ runId?: string; description?: string }> {
  const { rows } = await transaction.execute({
    sql: `SELECT run_id, status, body FROM tasks WHERE session_id = ? AND id = ? AND ifnull(run_id = ?, ? IS NULL)
          ORDER BY position DESC LIMIT 1`,
    args: [sessionId, columnText(taskId), runId, runId],
  });
  const [task] = rows;
  if (task === undefined) {
    throw missing('task', taskId, `GET /api/v1/sessions/${encodeURIComponent(sessionId)}/tasks lists them.`);
  }
  if (String(task.status) !== 'running') {
    throw new AppError('conflict', `The task has ended (${task.status}): there is nothing to stop.`, {
      details: { reason: 'task_ended', status: String(task.status) },
    });
  }
  const { description } = JSON.parse(String(task.body)) as Partial<Task>;
  return {
    ...(task.run_id === null ? {} : { runId: String(task.run_id) }),
    ...(description ? { description: cutText(description, MAX_DESCRIPTION) } : {}),
  };
}

/**
 * @param digest of what was answered, where the sender says so
 * @returns the request as it is open now: an answer is meant for this and nothing else
 */
async function requireOpen(
  transaction: WriteTransaction,
  session: WritableSession,
  requestId: string,
  kind: 'permission' | 'question',
  digest: string | null | undefined,
): Promise<AnsweredRequest> {
  const open = session.pendingRequests.find((request) => request.id === requestId);
  if (open === undefined) {
    // A walk through the session's events, which only a request that comes too late has to pay for.
    const { rows } = await transaction.execute({
      sql: `SELECT 1 FROM events WHERE session_id = ? AND type = 'CUSTOM' AND entity_id = ?
            AND payload->>'$.name' = 'request:opened' LIMIT 1`,
      args: [session.id, columnText(requestId)],
    });
    if (rows.length === 0) throw missing('request', requestId, 'The transcript shows what the agent asks.');
    throw new AppError('conflict', 'The request is resolved: the agent waits for no answer any more.', {
      details: { reason: 'request_resolved' },
    });
  }
  if (digest !== undefined && digest !== (open.digest ?? null)) {
    throw new AppError(
      'conflict',
      'The agent asks something else under this id now. Read what it asks, and answer that with its digest.',
      { details: { reason: 'request_changed', digest: open.digest ?? null } },
    );
  }
  if (open.kind !== undefined && open.kind !== kind) {
    const wanted = open.kind === 'question' ? '{"answers": {…}}' : '{"behavior": "allow" | "deny"}';
    throw new AppError('invalid_argument', `The request is a ${open.kind}. Answer it with ${wanted}.`);
  }
  for (const type of ['permission.decision', 'question.answer'] as const) {
    const about = { path: '$.requestId', value: requestId };
    const pending = await findEffective(transaction, session.agentId, session.id, type, about);
    if (pending === null) continue;
    throw new AppError('conflict', 'The request was answered already, and the answer is on its way to the agent.', {
      details: { reason: 'request_answered', commandId: pending.command.id },
    });
  }
  const { digest: current, openedPosition } = open;
  return { requestId, ...(current === undefined ? {} : { digest: current, openedPosition }) };
}

function missing(what: string, id: string, hint: string): AppError {
  return new AppError('not_found', `There is no ${what} ${JSON.stringify(id)}. ${hint}`);
}
