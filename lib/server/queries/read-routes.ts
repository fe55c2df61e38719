import { AppError } from '@interlude/protocol/errors';
import { INBOX_KINDS } from '@interlude/protocol/inbox-kinds';
import type { AgentsQuery, InboxQuery, LogFilterQuery, LogQuery, SessionsQuery } from '@interlude/protocol/queries';
import { markRedacted } from '@interlude/protocol/redaction/redact-model';
import { SESSION_STATES } from '@interlude/protocol/session-states';
import type { Asked } from '@/lib/server/access/asked';
import { cutShort } from '@/lib/server/access/cut-short';
import type { ServerContext } from '@/lib/server/access/server-context';
import { sightOf } from '@/lib/server/access/sight';
import { downloadLog } from './download-log';
import { cursorOf, LIST_START } from './list-cursor';
import { logFilterOf, logPlaceOf } from './log-query';
import { readActivity } from './read-activity';
import { AGENTS_GROUP, type ParkedPage, readAgent, readParked, searchAgents } from './read-agents';
import { readDelivery } from './read-delivery';
import { searchInbox } from './read-inbox';
import { readLogComponents } from './read-log-components';
import { readLogLevel } from './read-log-level';
import { readLogLines } from './read-log-lines';
import { readObligations, readSessionObligations } from './read-obligations';
import { readRequest } from './read-request';
import { AGENT_GROUP, readAgentSessions, readSession, readSessions, searchSessions } from './read-sessions';
import { type RunAsked, readTaskOutput } from './read-task-output';
import { readTask, readTasks } from './read-tasks';
import { readTranscript, type TranscriptRange } from './read-transcript';
import { readTurnAt } from './read-turn-at';
import { readWebhook, readWebhookDeliveries } from './read-webhook';

/**
 * The GET routes of the read models: the model, or 404. Reads of many rows wait for their turn.
 */

/**
 * Without `after` or a filter: the first page, newest event first. Otherwise a page of the matches in the order of
 * SESSION_STATES.
 */
export async function getSessions(asked: Asked<never, { query: SessionsQuery }>, server: ServerContext) {
  const sight = seen(asked, server);
  const { agent: agentId, state: states, q: words, limit } = asked.query;
  const isFiltered = states.length > 0 || words.length > 0;
  const after = asked.query.after ?? (agentId === null && !isFiltered ? null : LIST_START);
  return inTurn(asked, server, async () => {
    if (after === null) return readSessions(sight, limit);
    if (agentId !== null && !isFiltered) {
      return readAgentSessions(sight, agentId, { after: cursorOf(after, [AGENT_GROUP]), limit });
    }
    const page = { after: cursorOf(after, SESSION_STATES), limit };
    return searchSessions(sight, page, { agentId, states, words });
  });
}

export function getSession(asked: Asked<'sessionId'>, server: ServerContext) {
  const { sessionId } = asked.ids;
  return found('session', sessionId, readSession(seen(asked, server), sessionId));
}

export function getTranscript(asked: Asked<'sessionId', { query: TranscriptRange }>, server: ServerContext) {
  const { sessionId } = asked.ids;
  return inTurn(asked, server, () =>
    found('session', sessionId, readTranscript(seen(asked, server), sessionId, asked.query)),
  );
}

/** The inbox, or what of it matches, page by page. */
export async function getInbox(asked: Asked<never, { query: InboxQuery }>, server: ServerContext) {
  const { agent: agentId, session: sessionId, kind: kinds, q: words, limit, after } = asked.query;
  const page = { after: cursorOf(after ?? LIST_START, INBOX_KINDS), limit };
  const sight = seen(asked, server);
  const filter = { kinds, agentId, sessionId, words };
  return inTurn(asked, server, () => searchInbox(sight, page, filter));
}

export function getRequest(asked: Asked<'sessionId' | 'requestId'>, server: ServerContext) {
  const { sessionId, requestId } = asked.ids;
  return inTurn(asked, server, () =>
    found('request', requestId, readRequest(seen(asked, server), sessionId, requestId)),
  );
}

export function getDelivery(asked: Asked<'sessionId'>, server: ServerContext) {
  const { sessionId } = asked.ids;
  return found('session', sessionId, readDelivery(seen(asked, server), sessionId));
}

export function getTurnAt(asked: Asked<'sessionId', { query: { at: number } }>, server: ServerContext) {
  const { sessionId } = asked.ids;
  return found('session', sessionId, readTurnAt(seen(asked, server), sessionId, asked.query.at));
}

export function getTasks(asked: Asked<'sessionId'>, server: ServerContext) {
  const { sessionId } = asked.ids;
  return inTurn(asked, server, () => found('session', sessionId, readTasks(seen(asked, server), sessionId)));
}

export function getTask(asked: Asked<'sessionId' | 'taskId', { query: RunAsked }>, server: ServerContext) {
  const { sessionId, taskId } = asked.ids;
  return inTurn(asked, server, () =>
    found('task', taskId, readTask(seen(asked, server), sessionId, taskId, asked.query)),
  );
}

export function getTaskOutput(asked: Asked<'sessionId' | 'taskId', { query: RunAsked }>, server: ServerContext) {
  const { sessionId, taskId } = asked.ids;
  return inTurn(asked, server, () =>
    found('task', taskId, readTaskOutput(seen(asked, server), sessionId, taskId, asked.query)),
  );
}

export function getAgents(asked: Asked<never, { query: AgentsQuery }>, server: ServerContext) {
  const { limit, after, q: words } = asked.query;
  const cursor = cursorOf(after ?? LIST_START, [AGENTS_GROUP]);
  return inTurn(asked, server, () => searchAgents(seen(asked, server), { after: cursor, limit }, words));
}

export function getAgent(asked: Asked<'agentId'>, server: ServerContext) {
  const { agentId } = asked.ids;
  return inTurn(asked, server, () => found('agent', agentId, readAgent(seen(asked, server), agentId)));
}

export function getParked(asked: Asked<'agentId', { query: ParkedPage }>, server: ServerContext) {
  return readParked(seen(asked, server), asked.ids.agentId, asked.query);
}

/** The level its runner last said it writes, and the level it is asked for. `PUT` asks for another. */
export function getLogLevel(asked: Asked<'agentId'>, server: ServerContext) {
  const { agentId } = asked.ids;
  return found('agent', agentId, readLogLevel(seen(asked, server), agentId));
}

/** A runner is told sessions by the ids that it knows. */
export function getObligations(asked: Asked<'agentId'>, server: ServerContext) {
  const { agentId } = asked.ids;
  return readObligations(seen(asked, server), agentId, asked.principal.kind === 'runner');
}

/** What the fleet did lately, in its turn: it reads many rows. */
export function getActivity(asked: Asked<never, { query: { minutes: number } }>, server: ServerContext) {
  return inTurn(asked, server, () => readActivity(seen(asked, server), server.now(), asked.query.minutes));
}

export function getWebhook(asked: Asked, server: ServerContext) {
  return readWebhook(seen(asked, server), server);
}

export function getWebhookDeliveries(
  asked: Asked<never, { query: { before: number | null; limit: number } }>,
  server: ServerContext,
) {
  return readWebhookDeliveries(seen(asked, server), asked.query);
}

export function getSessionObligations(asked: Asked<'sessionId'>, server: ServerContext) {
  const { sessionId } = asked.ids;
  return readSessionObligations(seen(asked, server), sessionId);
}

export async function getLogLines(asked: Asked<'agentId', { query: LogQuery }>, server: ServerContext) {
  const {
    query,
    ids: { agentId },
  } = asked;
  const wanted = { filter: await logFilterOf(query), place: logPlaceOf(query), limit: query.limit };
  return inTurn(asked, server, () => found('agent', agentId, readLogLines(seen(asked, server), agentId, wanted)));
}

/** A file. */
export async function getLogDownload(
  asked: Asked<'agentId', { query: LogFilterQuery }>,
  server: ServerContext,
): Promise<Response> {
  const { principal, query } = asked;
  const { agentId } = asked.ids;
  const filter = await logFilterOf(query);
  const body = await found('agent', agentId, downloadLog(seen(asked, server), agentId, filter, principal.credentialId));
  const name = `${agentId}.log`;
  return markRedacted(
    new Response(cutShort(body, asked), {
      headers: {
        'content-type': 'text/plain; charset=utf-8',
        'content-disposition': `attachment; filename="${name.replace(/[^\w.-]/g, '_')}"; filename*=UTF-8''${encodeURIComponent(name).replaceAll("'", '%27')}`,
        'cache-control': 'no-store',
      },
    }),
  );
}

export function getLogComponents(asked: Asked<'agentId'>, server: ServerContext) {
  const { agentId } = asked.ids;
  return inTurn(asked, server, () => found('agent', agentId, readLogComponents(seen(asked, server), agentId)));
}

async function found<Model>(what: string, id: string, reading: Promise<Model | null>): Promise<Model> {
  const model = await reading;
  if (model !== null) return model;
  throw new AppError(
    'not_found',
    `There is no ${what} ${JSON.stringify(id)}. GET /api/v1/sessions and /agents list what there is.`,
  );
}

/** The database as far as the sender may see it. */
function seen({ principal }: Asked, { database }: ServerContext) {
  return sightOf(database, principal.scope, principal.redacts);
}

function inTurn<Model>(
  { request, principal }: Asked,
  { database }: ServerContext,
  read: () => Promise<Model>,
): Promise<Model> {
  return database.reads.run(principal.credentialId, read, { signal: request.signal });
}
