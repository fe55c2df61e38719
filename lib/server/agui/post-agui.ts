import { AppError } from '@interlude/protocol/errors';
import { laterPosition, type Position } from '@interlude/protocol/position';
import type { AgentSummary, RequestItem, SessionSummary, Task } from '@interlude/protocol/read-models';
import { SSE_HEADERS } from '@interlude/protocol/sse';
import type { TurnHeader } from '@interlude/protocol/turn-places';
import type { Row } from '@libsql/client';
import type { Database } from '@/db/client';
import { AGENT_ROW, agentFromRow, SESSION_ROW, sessionFromRow, TASK_ROW, taskFromRow } from '@/db/read-model-rows';
import { sessions } from '@/db/schema';
import { sessionsIn } from '@/db/scope-sql';
import { columnText, shapeOf } from '@/db/table-rows';
import { notFound } from '@/lib/server/access/principal';
import { type ReadScope, type RequestContext, readScope } from '@/lib/server/access/request-context';
import { StreamedResponse } from '@/lib/server/access/streamed-response';
import type { CommandServer } from '@/lib/server/commands/accept-command';
import { postRequestAnswer } from '@/lib/server/commands/answer-request';
import { postInterrupt, postMessage } from '@/lib/server/commands/session-commands';
import type { StreamServer } from '@/lib/server/fan-out/get-stream';
import { storedFold } from '@/lib/server/ingest/project-session';
import { readBody } from '@/lib/server/ingest/read-body';
import { redactResponse } from '@/lib/server/queries/json-response';
import { readRequest } from '@/lib/server/queries/read-pending';
import { query, rawRow, readSnapshot } from '@/lib/server/queries/read-snapshot';
import { readTranscript } from '@/lib/server/queries/read-transcript';
import { answerStream } from './answer-stream';
import { HISTORY_TURNS, historyOf, messageIdOf } from './client-parts';
import { MAX_PENDING, type PendingRequest, parseAnswer, parseInterruptId, pendingRequestOf } from './interrupts';
import { FOLLOW_MS, type Resume, type RunInput, readRunInput } from './run-input';
import { RunProjector, type RunProjectorOptions } from './run-projector';
import { TaskActivities } from './task-activity';
import { WellFormedStream } from './well-formed-stream';

interface AgUiServer extends CommandServer, StreamServer {}

type Sender = Pick<RequestContext, 'request' | 'principal' | 'digests' | 'whenOver'>;

type AgUiContext = RequestContext<'agentId', { query: { session: string | null } }>;

/**
 * `POST /agui/:agentId`: runs an AG-UI client's input. Sends its new messages and answers to the session, and streams the
 * session's log as AG-UI events.
 *
 * @throws AppError `malformed`, `invalid_argument`, `not_found`, `conflict`
 */
export async function postAgUi(context: AgUiContext, server: AgUiServer): Promise<Response> {
  const input = await readRunInput(await readBody(context.request));
  return input.connects ? connect(context, input, server) : run(context, input, server);
}

/** `POST /agui/:agentId/connect`: streams the history, then live events. */
export async function postAgUiConnect(context: AgUiContext, server: AgUiServer): Promise<Response> {
  return connect(context, await readRunInput(await readBody(context.request)), server);
}

/** The parts of the session that the client may see. */
async function factsFor(
  { ids, principal, digests }: AgUiContext,
  view: ReadScope,
  sessionId: string,
): Promise<SessionFacts> {
  return redactResponse(await readFacts(view, ids.agentId, sessionId), principal, digests);
}

async function run(context: AgUiContext, input: RunInput, server: AgUiServer): Promise<Response> {
  const { query, principal } = context;
  const view = readScope(server.database, principal.scope);
  const sessionId = query.session ?? input.sessionId ?? input.threadId;
  const before = await factsFor(context, view, sessionId);
  const { answered, notices } = await resume(input.resume, before, context, server);
  const sent: string[] = [];
  // Unanswered messages of other people are also at the end of a client's history.
  const known = await knownMessages(
    server.database,
    sessionId,
    input.sent.flatMap(({ clientId }) => messageIdOf(clientId) ?? []),
  );
  for (const { text, clientId } of input.sent) {
    if (known.has(messageIdOf(clientId) ?? '')) continue;
    const body = { text, clientId };
    sent.push((await postMessage({ ...context, ids: { sessionId }, body }, server)).messageId);
  }
  const facts = await factsFor(context, view, sessionId);
  const [firstSent] = sent;
  // A command's position follows its events. Retention may have removed the command.
  const ofCommand = 'SELECT position FROM commands WHERE id = ?';
  const queuedAt = firstSent === undefined ? null : await positionOf(server.database, ofCommand, firstSent);
  const sentAt = queuedAt ?? Number(facts.position);
  const follows = (input.followMs ?? 0) > 0;
  const { openTurn } = facts;
  // Without a new message, the client joins the open turn. A client that follows the session always joins.
  const continues = openTurn !== null && (sent.length === 0 || answered.length > 0);
  const isJoined = openTurn !== null && (continues || follows) && Number(openTurn.position) <= sentAt;
  const from = isJoined ? Number(openTurn.position) - 1 : sentAt;
  const isOpenAtFrom = openTurn !== null && !isJoined && Number(openTurn.position) <= from;
  return respond(input, facts, server, context, from, {
    messageIds: sent,
    answeredIn: continues ? openTurn.id : null,
    answersNext: openTurn === null && answered.length > 0,
    follows: follows ? 'while-tasks-run' : 'no',
    openTurnId: isOpenAtFrom ? openTurn.id : null,
    answered,
    knownUpTo: readUpTo(before, answered) ?? String(sentAt),
    notices,
  });
}

/** A client that answers requests has read the log up to the newest answered request. */
function readUpTo({ pending }: SessionFacts, answered: readonly string[]): Position | null {
  const opened = pending.flatMap(({ id, openedPosition }) => (answered.includes(id) ? (openedPosition ?? []) : []));
  return opened.length === 0 ? null : opened.reduce(laterPosition);
}

async function connect(context: AgUiContext, input: RunInput, server: AgUiServer): Promise<Response> {
  const { ids, query, request, principal } = context;
  const view = readScope(server.database, principal.scope);
  const sessionId = query.session ?? input.sessionId ?? input.threadId;
  await readFacts(view, ids.agentId, sessionId);
  const range = { before: null, limit: HISTORY_TURNS };
  const read = () => readTranscript(view, sessionId, range);
  const page = await view.reads.run(principal.credentialId, read, { signal: request.signal });
  const facts = await factsFor(context, view, sessionId);
  const history = historyOf(page?.turns ?? [], input.parts);
  const position = page?.position ?? facts.position;
  const openTurnId = page?.places?.openTurn?.id ?? null;
  const follows = input.followMs === null || input.followMs > 0;
  const plan = {
    messageIds: [],
    // A client that does not follow the session gets the open turn until its end.
    answeredIn: follows ? null : openTurnId,
    answersNext: false,
    follows: follows ? ('always' as const) : ('no' as const),
    openTurnId,
    answered: [],
    knownUpTo: position,
    notices: [],
  };
  return respond(input, facts, server, context, Number(position), plan, history);
}

type RunPlan = Pick<
  RunProjectorOptions,
  'messageIds' | 'answeredIn' | 'answersNext' | 'follows' | 'openTurnId' | 'answered' | 'knownUpTo' | 'notices'
>;

async function respond(
  input: RunInput,
  facts: SessionFacts,
  server: AgUiServer,
  { request, principal, digests, whenOver }: Sender,
  from: number,
  plan: RunPlan,
  history: readonly object[] | null = null,
): Promise<Response> {
  const { threadId, dialect, parts, runId } = input;
  const { session, agent, pending, running } = facts;
  const stream = new WellFormedStream({ threadId, dialect, parts });
  const tasks = new TaskActivities({ sessionId: session.id, agentId: session.agentId }, running);
  const asOf: Position = facts.position;
  const isUndelivered = plan.messageIds.length > 0 && agent?.connection !== 'connected';
  const isAway = session.away !== null || isUndelivered;
  const isTurnless = session.turnCount === 0 && session.lastText !== null;
  const projector = new RunProjector({ stream, parts, tasks, runId, pending, asOf, isAway, isTurnless, ...plan });
  if (history !== null) projector.projectHistory(history);
  const open = await answerStream({
    fanOut: server.fanOut,
    sessionId: session.id,
    from,
    turnPosition: (turnId) =>
      positionOf(server.database, 'SELECT position FROM turns WHERE session_id = ? AND id = ?', session.id, turnId),
    stream,
    projector,
    followMs: plan.follows === 'no' ? null : (input.followMs ?? FOLLOW_MS),
    maxMs: server.streamMaxMs,
    client: principal.credentialId,
    signal: request.signal,
    scope: principal.scope,
    digests,
    whenOver,
  });
  return new StreamedResponse(open, SSE_HEADERS);
}

/** Outcomes that are not errors for an AG-UI client: another client has answered, or the agent has continued. */
const TOO_LATE = new Set<unknown>(['request_resolved', 'request_expired', 'request_answered', 'request_changed']);

/** Answers open requests. A request that is no longer open is reported in the notices. */
async function resume(resumes: readonly Resume[], facts: SessionFacts, sender: Sender, server: AgUiServer) {
  const answered: string[] = [];
  const notices: { name: string; value: unknown }[] = [];
  for (const entry of resumes) {
    const { requestId, mark } = parseInterruptId(entry.interruptId);
    const pending = facts.pending.find(
      ({ id, digest }) => id === requestId && (mark === null || digest?.startsWith(mark)),
    );
    const state = pending === undefined ? 'too-late' : await sendAnswer(entry, pending, facts, sender, server);
    if (state === 'given') answered.push(requestId);
    const outcome =
      pending === undefined
        ? ((await readPendingRequest(readScope(server.database, sender.principal.scope), facts.session.id, requestId))
            ?.outcome ?? null)
        : null;
    notices.push({ name: 'interlude:resumed', value: { interruptId: entry.interruptId, requestId, state, outcome } });
  }
  return { answered, notices };
}

async function sendAnswer(
  entry: Resume,
  request: PendingRequest,
  { session, openTurn }: SessionFacts,
  sender: Sender,
  server: AgUiServer,
): Promise<'given' | 'too-late'> {
  const sessionId = session.id;
  const body = parseAnswer(request, entry);
  try {
    // A question can't be denied, so cancelling it interrupts the turn.
    if (body === null) {
      const turn = openTurn === null ? {} : { turnId: openTurn.id };
      await postInterrupt({ ...sender, ids: { sessionId }, body: turn }, server);
    } else await postRequestAnswer({ ...sender, ids: { sessionId, requestId: request.id }, body }, server);
    return 'given';
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'conflict') throw error;
    const { reason } = error.details;
    if (TOO_LATE.has(reason) || (body === null && (reason === 'turn_ended' || reason === 'no_open_turn'))) {
      // An answer that is on its way to the agent counts as this one.
      return reason === 'request_answered' ? 'given' : 'too-late';
    }
    throw error;
  }
}

interface SessionFacts {
  position: Position;
  session: SessionSummary;
  agent: AgentSummary | null;
  openTurn: TurnHeader | null;
  /** Open requests, oldest first, at most MAX_PENDING. */
  pending: PendingRequest[];
  running: Task[];
}

const MAX_RUNNING = 200;

const REMEMBERED = shapeOf(sessions, 'memory', 'places');

/** @throws AppError `not_found` */
export async function readFacts(view: ReadScope, agentId: string, sessionId: string): Promise<SessionFacts> {
  const id = columnText(sessionId);
  const { position, found } = await readSnapshot<[SessionSummary, Row, AgentSummary, Task]>(view, [
    query(
      sessionFromRow,
      `SELECT ${SESSION_ROW.columns()} FROM sessions WHERE id = ? AND ${sessionsIn(view.scope, 'id')}`,
      id,
    ),
    query(rawRow, `SELECT ${REMEMBERED.columns()} FROM sessions WHERE id = ?`, id),
    query(agentFromRow, `SELECT ${AGENT_ROW.columns()} FROM agents WHERE id = ?`, columnText(agentId)),
    query(
      taskFromRow,
      `SELECT ${TASK_ROW.columns()} FROM tasks WHERE session_id = ? AND status = 'running' ORDER BY position DESC LIMIT ?`,
      id,
      MAX_RUNNING,
    ),
  ]);
  const [[session], [remembered], [agent = null], running] = found;
  if (agent === null) throw notFound('agent', agentId, '/agents');
  if (session === undefined || remembered === undefined || session.agentId !== agentId) {
    const list = `GET /api/v1/sessions?agent=${encodeURIComponent(agentId)}`;
    const message = `There is no session ${JSON.stringify(sessionId)}. A threadId is the id of a session of this agent: ${list} lists them. If your client generates its own thread ids, name the session in ?session=<id>, or in forwardedProps.interlude.sessionId.`;
    throw new AppError('not_found', message);
  }
  const { memory, places } = REMEMBERED.read(remembered);
  const { pendingRequests = [] } = storedFold(memory);
  const pending: PendingRequest[] = [];
  for (const { id: requestId } of pendingRequests.slice(0, MAX_PENDING)) {
    const request = await readPendingRequest(view, session.id, requestId);
    if (request !== null && request.outcome === null) pending.push(request);
  }
  return { position, session, agent, openTurn: places.openTurn, pending, running: running.reverse() };
}

async function readPendingRequest(
  view: ReadScope,
  sessionId: string,
  requestId: string,
): Promise<(PendingRequest & Pick<RequestItem, 'outcome'>) | null> {
  const detail = await readRequest(view, sessionId, requestId);
  if (detail === null) return null;
  return { ...pendingRequestOf(detail.request), outcome: detail.request.outcome };
}

async function positionOf({ reader }: Database, sql: string, ...args: string[]): Promise<number | null> {
  const { rows } = await reader.execute({ sql, args: args.map(columnText) });
  return rows[0] === undefined ? null : Number(rows[0].position);
}

/** Returns the ids whose messages the session has: sent from the dashboard, or named by a turn that answered them. */
async function knownMessages(
  database: Database,
  sessionId: string,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const id = columnText(sessionId);
  const idsJson = JSON.stringify(ids);
  const { rows } = await database.reader.execute({
    sql: `SELECT id FROM commands WHERE session_id = ?1 AND type = 'message' AND id IN (SELECT value FROM json_each(?2))
          UNION
          SELECT message_id FROM obligations WHERE session_id = ?1 AND message_id IN (SELECT value FROM json_each(?2))`,
    args: [id, idsJson],
  });
  return new Set(rows.map(({ id: known }) => String(known)));
}
