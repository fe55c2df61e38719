import { AppError } from '@interlude/protocol/errors';
import { laterPosition, type Position } from '@interlude/protocol/position';
import type { AgentSummary, RequestItem, SessionSummary, Task } from '@interlude/protocol/read-models';
import { SSE_HEADERS } from '@interlude/protocol/sse';
import type { TurnHeader } from '@interlude/protocol/turn-places';
import type { Row } from '@libsql/client';
import type { Database } from '@/db/client';
import { columnText } from '@/db/column-text';
import { AGENT_ROW, agentFromRow, SESSION_ROW, sessionFromRow, TASK_ROW, taskFromRow } from '@/db/fleet-rows';
import { sessions } from '@/db/schema';
import { sessionsIn } from '@/db/scope-sql';
import { shapeOf } from '@/db/table-rows';
import type { Asked as AskedOf } from '@/lib/server/access/asked';
import { type Sight, sightOf } from '@/lib/server/access/sight';
import { StreamAnswer } from '@/lib/server/access/stream-answer';
import { type CommandServer, missing } from '@/lib/server/commands/accept-command';
import { postRequestAnswer } from '@/lib/server/commands/answer-request';
import { postInterrupt, postMessage } from '@/lib/server/commands/session-commands';
import type { StreamServer } from '@/lib/server/fan-out/get-stream';
import { readBody } from '@/lib/server/ingest/read-body';
import { rememberedFold } from '@/lib/server/ingest/remembered-fold';
import { redactResponse } from '@/lib/server/queries/answer';
import { readRequest } from '@/lib/server/queries/read-pending';
import { query, rawRow, readSnapshot } from '@/lib/server/queries/read-snapshot';
import { readTranscript } from '@/lib/server/queries/read-transcript';
import { answerStream } from './answer-stream';
import { HISTORY_TURNS, historyOf } from './history';
import { answerIn, MOST_PENDING, type PendingRequest, pendingRequestOf, requestMeant } from './interrupts';
import { FOLLOW_MS, messageIdOf, type Resume, type RunInput, readRunInput } from './run-input';
import { RunProjector, type RunProjectorOptions } from './run-projector';
import { TaskActivities } from './task-activity';
import { WellFormedStream } from './well-formed-stream';

export interface AgUiServer extends CommandServer, StreamServer {}

/** Who asks, and with which request. */
type Sender = Pick<AskedOf, 'request' | 'principal' | 'digests' | 'whenOver'>;

type Asking = AskedOf<'agentId', { query: { session: string | null } }>;

/**
 * `POST /agui/:agentId`: what an AG-UI client runs. Its new messages are sent to the session, its answers to the requests
 * that wait, and what the session's log then has is streamed in the words of strict clients.
 *
 * @throws AppError `malformed`, `invalid_argument`, `not_found`, `conflict`
 */
export async function postAgUi(asked: Asking, server: AgUiServer): Promise<Response> {
  const input = await readRunInput(await readBody(asked.request));
  return input.connects ? connect(asked, input, server) : run(asked, input, server);
}

/** `POST /agui/:agentId/connect`: what a client that comes back is told, and then live. */
export async function postAgUiConnect(asked: Asking, server: AgUiServer): Promise<Response> {
  return connect(asked, await readRunInput(await readBody(asked.request)), server);
}

/** With the digests that the client may see. */
async function factsFor({ ids, principal, digests }: Asking, sight: Sight, sessionId: string): Promise<SessionFacts> {
  return redactResponse(await readFacts(sight, ids.agentId, sessionId), principal, digests);
}

async function run(asked: Asking, input: RunInput, server: AgUiServer): Promise<Response> {
  const { query, principal } = asked;
  const sight = sightOf(server.database, principal.scope);
  const sessionId = query.session ?? input.sessionId ?? input.threadId;
  const before = await factsFor(asked, sight, sessionId);
  const { answered, says } = await resume(input.resume, before, asked, server);
  const sent: string[] = [];
  // What a client was told of other people's messages stands at its end, too, while nobody has answered it.
  const told = await messagesKnown(
    server.database,
    sessionId,
    input.sent.flatMap(({ clientId }) => messageIdOf(clientId) ?? []),
  );
  for (const { text, clientId } of input.sent) {
    if (told.has(messageIdOf(clientId) ?? '')) continue;
    const body = { text, clientId };
    sent.push((await postMessage({ ids: { sessionId }, body, ...senderOf(asked) }, server)).messageId);
  }
  const facts = await factsFor(asked, sight, sessionId);
  const [firstSent] = sent;
  const queuedAt = firstSent === undefined ? null : await commandAt(server.database, firstSent);
  const sentAt = queuedAt ?? Number(facts.position);
  const follows = (input.followMs ?? 0) > 0;
  const { openTurn } = facts;
  // Without a message it goes on with what is under way; whoever follows hears of that too.
  const goesOn = openTurn !== null && (sent.length === 0 || answered.length > 0);
  const isJoined = openTurn !== null && (goesOn || follows) && Number(openTurn.position) <= sentAt;
  const from = isJoined ? Number(openTurn.position) - 1 : sentAt;
  const isOpenAtFrom = openTurn !== null && !isJoined && Number(openTurn.position) <= from;
  return answer(input, facts, server, asked, from, {
    awaits: sent,
    answeredIn: goesOn ? openTurn.id : null,
    answersNext: openTurn === null && answered.length > 0,
    follows: follows ? 'while-tasks-run' : 'no',
    openTurnId: isOpenAtFrom ? openTurn.id : null,
    answered,
    quietUpTo: heardUpTo(before, answered) ?? String(sentAt),
    says,
  });
}

/** Up to where a client was told the log that answers: to where it was asked. */
function heardUpTo({ pending }: SessionFacts, answered: readonly string[]): Position | null {
  const asked = pending.flatMap(({ id, openedPosition }) => (answered.includes(id) ? (openedPosition ?? []) : []));
  return asked.length === 0 ? null : asked.reduce(laterPosition);
}

async function connect(asked: Asking, input: RunInput, server: AgUiServer): Promise<Response> {
  const { ids, query, request, principal } = asked;
  const sight = sightOf(server.database, principal.scope);
  const sessionId = query.session ?? input.sessionId ?? input.threadId;
  await readFacts(sight, ids.agentId, sessionId);
  const range = { before: null, limit: HISTORY_TURNS };
  const read = () => readTranscript(sight, sessionId, range);
  const page = await sight.reads.run(principal.credentialId, read, { signal: request.signal });
  const facts = await factsFor(asked, sight, sessionId);
  const history = historyOf(page?.turns ?? [], input.parts);
  const position = page?.position ?? facts.position;
  const openTurnId = page?.places?.openTurn?.id ?? null;
  const follows = input.followMs === null || input.followMs > 0;
  const made = {
    awaits: [],
    // Who does not follow is told the turn under way to its end.
    answeredIn: follows ? null : openTurnId,
    answersNext: false,
    follows: follows ? ('always' as const) : ('no' as const),
    openTurnId,
    answered: [],
    quietUpTo: position,
    says: [],
  };
  return answer(input, facts, server, asked, Number(position), made, history);
}

function senderOf({ request, principal, digests, whenOver }: Sender): Sender {
  return { request, principal, digests, whenOver };
}

type Made = Pick<
  RunProjectorOptions,
  'awaits' | 'answeredIn' | 'answersNext' | 'follows' | 'openTurnId' | 'answered' | 'quietUpTo' | 'says'
>;

async function answer(
  input: RunInput,
  facts: SessionFacts,
  server: AgUiServer,
  { request, principal, digests, whenOver }: Sender,
  from: number,
  made: Made,
  history: readonly object[] | null = null,
): Promise<Response> {
  const { threadId, dialect, parts, runId } = input;
  const { session, agent, pending, running } = facts;
  const stream = new WellFormedStream({ threadId, dialect, parts });
  const tasks = new TaskActivities({ sessionId: session.id, agentId: session.agentId }, running);
  const asOf: Position = facts.position;
  const isUnheard = made.awaits.length > 0 && agent?.connection !== 'connected';
  const isAway = session.away !== null || isUnheard;
  const isTurnless = session.turnCount === 0 && session.lastText !== null;
  const course = new RunProjector({ stream, parts, tasks, runId, pending, asOf, isAway, isTurnless, ...made });
  if (history !== null) course.connected(history);
  const open = await answerStream({
    fanOut: server.fanOut,
    sessionId: session.id,
    from,
    turnBegan: (turnId) => turnBegan(server.database, session.id, turnId),
    stream,
    course,
    followMs: made.follows === 'no' ? null : (input.followMs ?? FOLLOW_MS),
    maxMs: server.streamMaxMs,
    client: principal.credentialId,
    signal: request.signal,
    scope: principal.scope,
    digests,
    whenOver,
  });
  return new StreamAnswer(open, SSE_HEADERS);
}

/** What no longer waits for an answer is none of an error: somebody else has given it, or the agent has gone on. */
const TOO_LATE = new Set<unknown>(['request_resolved', 'request_expired', 'request_answered', 'request_changed']);

/**
 * Answers what waits. What has been answered already is left as it is, and said.
 * @returns `answered`: the requests that wait no more, as far as this client is concerned
 */
async function resume(resumes: readonly Resume[], facts: SessionFacts, sender: Sender, server: AgUiServer) {
  const answered: string[] = [];
  const says: { name: string; value: unknown }[] = [];
  for (const entry of resumes) {
    const { requestId, mark } = requestMeant(entry.interruptId);
    const pending = facts.pending.find(
      ({ id, digest }) => id === requestId && (mark === null || digest?.startsWith(mark)),
    );
    const state = pending === undefined ? 'too-late' : await give(entry, pending, facts, sender, server);
    if (state === 'given') answered.push(requestId);
    const outcome =
      pending === undefined
        ? ((await readPendingRequest(sightOf(server.database, sender.principal.scope), facts.session.id, requestId))
            ?.outcome ?? null)
        : null;
    says.push({ name: 'interlude:resumed', value: { interruptId: entry.interruptId, requestId, state, outcome } });
  }
  return { answered, says };
}

async function give(
  entry: Resume,
  asked: PendingRequest,
  { session, openTurn }: SessionFacts,
  sender: Sender,
  server: AgUiServer,
): Promise<'given' | 'too-late'> {
  const sessionId = session.id;
  const body = answerIn(asked, entry);
  try {
    // A question has no answer that says no: whoever cancels it ends the turn that asks.
    if (body === null) {
      const turn = openTurn === null ? {} : { turnId: openTurn.id };
      await postInterrupt({ ids: { sessionId }, body: turn, ...senderOf(sender) }, server);
    } else await postRequestAnswer({ ids: { sessionId, requestId: asked.id }, body, ...senderOf(sender) }, server);
    return 'given';
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'conflict') throw error;
    const { reason } = error.details;
    if (TOO_LATE.has(reason) || (body === null && (reason === 'turn_ended' || reason === 'no_open_turn'))) {
      // an answer that is on its way is as good as this one
      return reason === 'request_answered' ? 'given' : 'too-late';
    }
    throw error;
  }
}

/** How a session stands at a position. */
interface SessionFacts {
  position: Position;
  session: SessionSummary;
  agent: AgentSummary | null;
  openTurn: TurnHeader | null;
  /** What the agent waits for, the oldest first, at most MOST_ASKED. */
  pending: PendingRequest[];
  running: Task[];
}

/** Most running tasks that are read. */
const MOST_RUNNING = 200;

const REMEMBERED = shapeOf(sessions, 'memory', 'places');

/** @throws AppError `not_found` that says how to find the sessions of the agent */
export async function readFacts(sight: Sight, agentId: string, sessionId: string): Promise<SessionFacts> {
  const id = columnText(sessionId);
  const { position, found } = await readSnapshot<[SessionSummary, Row, AgentSummary, Task]>(sight, [
    query(
      sessionFromRow,
      `SELECT ${SESSION_ROW.columns()} FROM sessions WHERE id = ? AND ${sessionsIn(sight.scope, 'id')}`,
      id,
    ),
    query(rawRow, `SELECT ${REMEMBERED.columns()} FROM sessions WHERE id = ?`, id),
    query(agentFromRow, `SELECT ${AGENT_ROW.columns()} FROM agents WHERE id = ?`, columnText(agentId)),
    query(
      taskFromRow,
      `SELECT ${TASK_ROW.columns()} FROM tasks WHERE session_id = ? AND status = 'running' ORDER BY position DESC LIMIT ?`,
      id,
      MOST_RUNNING,
    ),
  ]);
  const [[session], [remembered], [agent = null], running] = found;
  if (agent === null) throw missing('agent', agentId, 'GET /api/v1/agents lists them.');
  if (session === undefined || remembered === undefined || session.agentId !== agentId) {
    const list = `GET /api/v1/sessions?agent=${encodeURIComponent(agentId)}`;
    const hint = `A threadId is the id of a session of this agent: ${list} lists them. If your client makes thread ids of its own, name the session in ?session=<id>, or in forwardedProps.interlude.sessionId.`;
    throw missing('session', sessionId, hint);
  }
  const { memory, places } = REMEMBERED.read(remembered);
  const { pendingRequests = [] } = rememberedFold(memory);
  const pending: PendingRequest[] = [];
  for (const { id: requestId } of pendingRequests.slice(0, MOST_PENDING)) {
    const asked = await readPendingRequest(sight, session.id, requestId);
    if (asked !== null && asked.outcome === null) pending.push(asked);
  }
  return { position, session, agent, openTurn: places.openTurn, pending, running: running.reverse() };
}

/** What was asked last under the id, and how it ended. */
async function readPendingRequest(
  sight: Sight,
  sessionId: string,
  requestId: string,
): Promise<(PendingRequest & Pick<RequestItem, 'outcome'>) | null> {
  const detail = await readRequest(sight, sessionId, requestId);
  if (detail === null) return null;
  return { ...pendingRequestOf(detail.request), outcome: detail.request.outcome };
}

/** Where a turn began; null if there is none. */
async function turnBegan(database: Database, sessionId: string, turnId: string): Promise<number | null> {
  const { rows } = await database.reader.execute({
    sql: 'SELECT position FROM turns WHERE session_id = ? AND id = ?',
    args: [columnText(sessionId), columnText(turnId)],
  });
  return rows[0] === undefined ? null : Number(rows[0].position);
}

/**
 * Which of these ids are of messages that the session has: written on the dashboard, or named by a turn that answered
 * them.
 */
async function messagesKnown(
  database: Database,
  sessionId: string,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set();
  const id = columnText(sessionId);
  const asked = JSON.stringify(ids);
  const { rows } = await database.reader.execute({
    sql: `SELECT id FROM commands WHERE session_id = ?1 AND type = 'message' AND id IN (SELECT value FROM json_each(?2))
          UNION
          SELECT message_id FROM obligations WHERE session_id = ?1 AND message_id IN (SELECT value FROM json_each(?2))`,
    args: [id, asked],
  });
  return new Set(rows.map(({ id: known }) => String(known)));
}

/** Where a command stands in its session's log: behind what the session shows of it. Null if it is not known any more. */
async function commandAt(database: Database, commandId: string): Promise<number | null> {
  const { rows } = await database.reader.execute({
    sql: 'SELECT position FROM commands WHERE id = ?',
    args: [commandId],
  });
  return rows[0] === undefined ? null : Number(rows[0].position);
}
