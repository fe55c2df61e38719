import { clientOf } from '@/lib/access/client-of';
import type { ServerContext } from '@/lib/access/server-context';
import { AppError } from '@/lib/protocol/errors';
import { SESSION_STATES } from '@/lib/protocol/read-models';
import { answer } from './answer';
import { downloadLog } from './download-log';
import { cursorOf, LIST_START } from './list-cursor';
import { logFilterOf, logRequestOf } from './log-query';
import { invalid, limitOf, onlyKnown, positionOf, timeOf } from './query-arguments';
import { AGENTS_GROUP, AGENTS_LISTED, readAgent, readAgents, readParked } from './read-agents';
import { readLogComponents } from './read-log-components';
import { readLogLevel } from './read-log-level';
import { readLogLines } from './read-log-lines';
import { readObligations } from './read-obligations';
import {
  AGENT_GROUP,
  readAgentSessions,
  readSession,
  readSessionPage,
  readSessions,
  SESSIONS_LISTED,
} from './read-sessions';
import { readTask, readTasks } from './read-tasks';
import { readTranscript } from './read-transcript';
import { readTurnAt } from './read-turn-at';

/**
 * The GET routes of the read models: read, 404 where there is nothing. What may be many rows is read when
 * its turn has come.
 */

type Ids = Record<string, string>;

/**
 * `?limit=1..1000`: how many of those that are done. `?after=0` or `after=<next>`, with `limit` rows each and `agent` for
 * those of one: page by page.
 */
export async function getSessions(request: Request, server: ServerContext): Promise<Response> {
  const query = new URL(request.url).searchParams;
  const limit = limitOf(query, SESSIONS_LISTED, SESSIONS_LISTED);
  const agentId = query.get('agent');
  const after = query.get('after') ?? (agentId === null ? null : LIST_START);
  return inTurn(request, server, async () => {
    if (after === null) return answer(await readSessions(server.database, limit));
    if (agentId === null) {
      const cursor = cursorOf(after, SESSION_STATES);
      return answer(await readSessionPage(server.database, { after: cursor, limit }));
    }
    const cursor = cursorOf(after, [AGENT_GROUP]);
    return answer(await readAgentSessions(server.database, agentId, { after: cursor, limit }));
  });
}

export function getSession(_request: Request, { database }: ServerContext, { sessionId = '' }: Ids): Promise<Response> {
  return found('session', sessionId, readSession(database, sessionId));
}

/** `?before=<turn id or position>&limit=1..200` */
export async function getTranscript(request: Request, server: ServerContext, { sessionId = '' }: Ids) {
  const query = new URL(request.url).searchParams;
  const range = { before: query.get('before'), limit: limitOf(query, 50, 200) };
  return inTurn(request, server, () => found('session', sessionId, readTranscript(server.database, sessionId, range)));
}

/** `?at=<epoch ms>` */
export async function getTurnAt(request: Request, { database }: ServerContext, { sessionId = '' }: Ids) {
  const query = new URL(request.url).searchParams;
  onlyKnown(query, ['at']);
  const at = timeOf(query, 'at');
  if (at === null) throw invalid('at', '', 'a time in epoch milliseconds, such as the occurredAt of a log line');
  return found('session', sessionId, readTurnAt(database, sessionId, at));
}

export function getTasks(request: Request, server: ServerContext, { sessionId = '' }: Ids): Promise<Response> {
  return inTurn(request, server, () => found('session', sessionId, readTasks(server.database, sessionId)));
}

/** `?runId=`, where the agent re-uses task ids */
export function getTask(request: Request, server: ServerContext, { sessionId = '', taskId = '' }: Ids) {
  const runId = new URL(request.url).searchParams.get('runId');
  return inTurn(request, server, () => found('task', taskId, readTask(server.database, sessionId, taskId, runId)));
}

/** `?after=0` or `after=<next>`, `&limit=1..1000` */
export async function getAgents(request: Request, server: ServerContext): Promise<Response> {
  const query = new URL(request.url).searchParams;
  const limit = limitOf(query, AGENTS_LISTED, AGENTS_LISTED);
  const after = cursorOf(query.get('after') ?? LIST_START, [AGENTS_GROUP]);
  return inTurn(request, server, async () => answer(await readAgents(server.database, { after, limit })));
}

export function getAgent(request: Request, server: ServerContext, { agentId = '' }: Ids): Promise<Response> {
  return inTurn(request, server, () => found('agent', agentId, readAgent(server.database, agentId)));
}

const PARKED_STATES = ['parked', 'assigned', 'discarded'] as const;

/** `?state=parked|assigned|discarded&after=<position>&limit=1..200` */
export async function getParked(request: Request, { database }: ServerContext, { agentId = '' }: Ids) {
  const query = new URL(request.url).searchParams;
  onlyKnown(query, ['state', 'after', 'limit']);
  const said = query.get('state') ?? 'parked';
  const state = PARKED_STATES.find((known) => known === said);
  if (state === undefined) throw invalid('state', said, PARKED_STATES.join(', '));
  const page = { state, after: positionOf(query, 'after') ?? 0, limit: limitOf(query, 50, 200) };
  return answer(await readParked(database, agentId, page));
}

/** What its runner last said it writes, and what is asked of it. `PUT` asks for another one. */
export function getLogLevel(_request: Request, { database }: ServerContext, { agentId = '' }: Ids): Promise<Response> {
  return found('agent', agentId, readLogLevel(database, agentId));
}

export async function getObligations(_request: Request, { database }: ServerContext, { agentId = '' }: Ids) {
  return answer(await readObligations(database, agentId));
}

/** `?level=&component=&q=&regex=&from=&to=`, one of `before=&after=&around=&line=&at=`, `&limit=1..1000` */
export async function getLogLines(request: Request, server: ServerContext, { agentId = '' }: Ids): Promise<Response> {
  const wanted = await logRequestOf(new URL(request.url).searchParams);
  return inTurn(request, server, () => found('agent', agentId, readLogLines(server.database, agentId, wanted)));
}

/** The same filters as the lines; a file. */
export async function getLogDownload(request: Request, server: ServerContext, ids: Ids): Promise<Response> {
  const { agentId = '' } = ids;
  const filter = await logFilterOf(new URL(request.url).searchParams);
  const body =
    (await downloadLog(server.database, agentId, filter, clientOf(request.headers))) ?? missing('agent', agentId);
  const name = `${agentId}.log`;
  return new Response(body, {
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      'content-disposition': `attachment; filename="${name.replace(/[^\w.-]/g, '_')}"; filename*=UTF-8''${encodeURIComponent(name).replaceAll("'", '%27')}`,
      'cache-control': 'no-store',
    },
  });
}

export function getLogComponents(request: Request, server: ServerContext, { agentId = '' }: Ids): Promise<Response> {
  return inTurn(request, server, () => found('agent', agentId, readLogComponents(server.database, agentId)));
}

async function found(what: string, id: string, model: Promise<object | null>): Promise<Response> {
  return answer((await model) ?? missing(what, id));
}

function inTurn(request: Request, server: ServerContext, read: () => Promise<Response>): Promise<Response> {
  return server.database.reads.run(clientOf(request.headers), read, { signal: request.signal });
}

function missing(what: string, id: string): never {
  throw new AppError(
    'not_found',
    `There is no ${what} ${JSON.stringify(id)}. GET /api/v1/sessions and /agents list what there is.`,
  );
}
