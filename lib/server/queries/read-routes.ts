import { AppError } from '@interlude/protocol/errors';
import type { AgentsQuery, InboxQuery, LogFilterQuery, LogQuery, SessionsQuery } from '@interlude/protocol/queries';
import { markRedacted } from '@interlude/protocol/redaction/redact-model';
import { INBOX_KINDS, SESSION_STATES } from '@interlude/protocol/vocabulary';
import type { RequestContext, ServerContext } from '@/lib/server/access/request-context';
import { type ReadScope, readScope } from '@/lib/server/access/request-context';
import { abortableBody } from '@/lib/server/access/streamed-response';
import { readActivity } from './read-activity';
import { AGENTS_GROUP, type ParkedPage, readAgent, readParked, searchAgents } from './read-agents';
import { readDelivery } from './read-delivery';
import { searchInbox } from './read-inbox';
import { downloadLog, logFilterOf, logPlaceOf, readLogComponents, readLogLevel, readLogLines } from './read-logs';
import { readObligations, readRequest, readSessionObligations } from './read-pending';
import { AGENT_GROUP, readAgentSessions, readSession, readSessions, searchSessions } from './read-sessions';
import { readTask, readTaskOutput, readTasks, type TaskRunQuery } from './read-tasks';
import { readTranscript, readTurnAt, type TranscriptRange } from './read-transcript';
import { readWebhook, readWebhookDeliveries } from './read-webhook';
import { cursorOf, LIST_START } from './search-pages';

/** The GET routes of the read models. Each answers a model or `not_found`. */

type Read<Request extends RequestContext, Model> = (
  asked: Request,
  sight: ReadScope,
  server: ServerContext,
) => Promise<Model>;

/** A handler that reads through the sender's scope. */
function direct<Request extends RequestContext, Model>(read: Read<Request, Model>) {
  return (asked: Request, server: ServerContext): Promise<Model> => {
    const { scope, redacts } = asked.principal;
    return read(asked, readScope(server.database, scope, redacts), server);
  };
}

/** The same for reads of many rows, which wait in the sender's queue. */
function queued<Request extends RequestContext, Model>(read: Read<Request, Model>) {
  return (asked: Request, server: ServerContext): Promise<Model> => {
    const { request, principal } = asked;
    return server.database.reads.run(principal.credentialId, () => direct(read)(asked, server), {
      signal: request.signal,
    });
  };
}

async function found<Model>(kind: string, id: string, reading: Promise<Model | null>): Promise<Model> {
  const model = await reading;
  if (model !== null) return model;
  throw new AppError(
    'not_found',
    `There is no ${kind} ${JSON.stringify(id)}. GET /api/v1/sessions and /agents list what there is.`,
  );
}

type OfSession<Query = unknown> = RequestContext<'sessionId', { query: Query }>;
type OfAgent<Query = unknown> = RequestContext<'agentId', { query: Query }>;
type OfTask = RequestContext<'sessionId' | 'taskId', { query: TaskRunQuery }>;

/**
 * Without `after` or a filter: the first page, newest event first. Otherwise a page of the matches in the order of
 * SESSION_STATES.
 */
export const getSessions = queued(async ({ query }: RequestContext<never, { query: SessionsQuery }>, sight) => {
  const { agent: agentId, state: states, q: words, limit } = query;
  const isFiltered = states.length > 0 || words.length > 0;
  const after = query.after ?? (agentId === null && !isFiltered ? null : LIST_START);
  if (after === null) return readSessions(sight, limit);
  if (agentId !== null && !isFiltered) {
    return readAgentSessions(sight, agentId, { after: cursorOf(after, [AGENT_GROUP]), limit });
  }
  return searchSessions(sight, { after: cursorOf(after, SESSION_STATES), limit }, { agentId, states, words });
});

export const getSession = direct(({ ids: { sessionId } }: OfSession, sight) =>
  found('session', sessionId, readSession(sight, sessionId)),
);
export const getTranscript = queued(({ ids: { sessionId }, query }: OfSession<TranscriptRange>, sight) =>
  found('session', sessionId, readTranscript(sight, sessionId, query)),
);
export const getDelivery = direct(({ ids: { sessionId } }: OfSession, sight) =>
  found('session', sessionId, readDelivery(sight, sessionId)),
);
export const getTurnAt = direct(({ ids: { sessionId }, query }: OfSession<{ at: number }>, sight) =>
  found('session', sessionId, readTurnAt(sight, sessionId, query.at)),
);
export const getTasks = queued(({ ids: { sessionId } }: OfSession, sight) =>
  found('session', sessionId, readTasks(sight, sessionId)),
);
export const getTask = queued(({ ids: { sessionId, taskId }, query }: OfTask, sight) =>
  found('task', taskId, readTask(sight, sessionId, taskId, query)),
);
export const getTaskOutput = queued(({ ids: { sessionId, taskId }, query }: OfTask, sight) =>
  found('task', taskId, readTaskOutput(sight, sessionId, taskId, query)),
);
export const getRequest = queued(
  ({ ids: { sessionId, requestId } }: RequestContext<'sessionId' | 'requestId'>, sight) =>
    found('request', requestId, readRequest(sight, sessionId, requestId)),
);
export const getSessionObligations = direct(({ ids }: OfSession, sight) =>
  readSessionObligations(sight, ids.sessionId),
);

export const getInbox = queued(async ({ query }: RequestContext<never, { query: InboxQuery }>, sight) => {
  const { agent: agentId, session: sessionId, kind: kinds, q: words, limit, after } = query;
  const page = { after: cursorOf(after ?? LIST_START, INBOX_KINDS), limit };
  return searchInbox(sight, page, { kinds, agentId, sessionId, words });
});
export const getActivity = queued(({ query }: RequestContext<never, { query: { minutes: number } }>, sight, server) =>
  readActivity(sight, server.now(), query.minutes),
);

export const getAgents = queued(async ({ query }: RequestContext<never, { query: AgentsQuery }>, sight) => {
  const { limit, after, q: words } = query;
  return searchAgents(sight, { after: cursorOf(after ?? LIST_START, [AGENTS_GROUP]), limit }, words);
});
export const getAgent = queued(({ ids: { agentId } }: OfAgent, sight) =>
  found('agent', agentId, readAgent(sight, agentId)),
);
export const getParked = direct(({ ids, query }: OfAgent<ParkedPage>, sight) => readParked(sight, ids.agentId, query));
/** A runner gets its own ids of the sessions. */
export const getObligations = direct(({ ids, principal }: OfAgent, sight) =>
  readObligations(sight, ids.agentId, principal.kind === 'runner'),
);

export const getWebhook = direct((_asked: RequestContext, sight, server) => readWebhook(sight, server));
export const getWebhookDeliveries = direct(
  ({ query }: RequestContext<never, { query: { before: number | null; limit: number } }>, sight) =>
    readWebhookDeliveries(sight, query),
);

/** The level that the runner last reported, and the desired one. */
export const getLogLevel = direct(({ ids: { agentId } }: OfAgent, sight) =>
  found('agent', agentId, readLogLevel(sight, agentId)),
);
export const getLogComponents = queued(({ ids: { agentId } }: OfAgent, sight) =>
  found('agent', agentId, readLogComponents(sight, agentId)),
);
export const getLogLines = queued(async ({ ids: { agentId }, query }: OfAgent<LogQuery>, sight) => {
  const wanted = { filter: await logFilterOf(query), place: logPlaceOf(query), limit: query.limit };
  return found('agent', agentId, readLogLines(sight, agentId, wanted));
});
export const getLogDownload = direct(async (asked: OfAgent<LogFilterQuery>, sight) => {
  const { principal, query, ids } = asked;
  const { agentId } = ids;
  const filter = await logFilterOf(query);
  const body = await found('agent', agentId, downloadLog(sight, agentId, filter, principal.credentialId));
  const name = `${agentId}.log`;
  return markRedacted(
    new Response(abortableBody(body, asked), {
      headers: {
        'content-type': 'text/plain; charset=utf-8',
        'content-disposition': `attachment; filename="${name.replace(/[^\w.-]/g, '_')}"; filename*=UTF-8''${encodeURIComponent(name).replaceAll("'", '%27')}`,
        'cache-control': 'no-store',
      },
    }),
  );
});
