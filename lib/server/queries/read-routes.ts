import { AppError } from '@interlude/protocol/errors';
import type { AgentsQuery, InboxQuery, LogFilterQuery, LogQuery, SessionsQuery } from '@interlude/protocol/queries';
import { markRedacted } from '@interlude/protocol/redaction/redact-model';
import { INBOX_KINDS } from '@interlude/protocol/vocabulary';
import { inboxPerson } from '@/lib/server/access/principal';
import {
  type ReadScope,
  type RequestContext,
  readScope,
  type ServerContext,
} from '@/lib/server/access/request-context';
import { abortableBody } from '@/lib/server/access/streamed-response';
import { readActivity } from './read-activity';
import { AGENTS_GROUP, type ParkedPage, readAgent, readParked, searchAgents } from './read-agents';
import { readCounts } from './read-counts';
import { readDelivery } from './read-delivery';
import { searchInbox } from './read-inbox';
import { downloadLog, logFilterOf, logPlaceOf, readLogComponents, readLogLevel, readLogLines } from './read-logs';
import { readObligations, readRequest, readSessionObligations } from './read-pending';
import { AGENT_GROUP, groupsOf, readAgentSessions, readSession, readSessions, searchSessions } from './read-sessions';
import { readTask, readTaskOutput, readTasks, type TaskRunQuery } from './read-tasks';
import { readTranscript, readTurnAt, type TranscriptRange } from './read-transcript';
import { readWebhook, readWebhookDeliveries } from './read-webhook';
import { cursorOf, LIST_START } from './search-pages';

/** The GET routes of the read models. Each returns a model or `not_found`. */

type Read<Request extends RequestContext, Model> = (
  context: Request,
  view: ReadScope,
  server: ServerContext,
) => Promise<Model>;

/** A handler that reads through the sender's scope. */
function direct<Request extends RequestContext, Model>(read: Read<Request, Model>) {
  return (context: Request, server: ServerContext): Promise<Model> => {
    const { scope, redacts } = context.principal;
    return read(context, readScope(server.database, scope, redacts), server);
  };
}

/** A handler for reads of many rows, which wait in the sender's queue. */
function queued<Request extends RequestContext, Model>(read: Read<Request, Model>) {
  return (context: Request, server: ServerContext): Promise<Model> => {
    const { request, principal } = context;
    return server.database.reads.run(principal.credentialId, () => direct(read)(context, server), {
      signal: request.signal,
    });
  };
}

async function found<Model>(kind: string, id: string, reading: Promise<Model | null>): Promise<Model> {
  const model = await reading;
  if (model !== null) return model;
  throw new AppError(
    'not_found',
    `There is no ${kind} ${JSON.stringify(id)}. GET /api/v1/sessions and /api/v1/agents list the existing ones.`,
  );
}

type OfSession<Query = unknown> = RequestContext<'sessionId', { query: Query }>;
type OfAgent<Query = unknown> = RequestContext<'agentId', { query: Query }>;
type OfTask = RequestContext<'sessionId' | 'taskId', { query: TaskRunQuery }>;

/**
 * Without `after` or a filter, the first page by newest event. Otherwise a page of the matches in the order of
 * SESSION_STATES.
 */
export const getSessions = queued(async ({ query }: RequestContext<never, { query: SessionsQuery }>, view) => {
  const { agent: agentId, state: states, listed, q: words, limit } = query;
  const isFiltered = states.length > 0 || listed.length > 0 || words.length > 0;
  const after = query.after ?? (agentId === null && !isFiltered ? null : LIST_START);
  if (after === null) return readSessions(view, limit);
  if (agentId !== null && !isFiltered) {
    return readAgentSessions(view, agentId, { after: cursorOf(after, [AGENT_GROUP]), limit });
  }
  const filter = { agentId, states, listed, words };
  return searchSessions(view, { after: cursorOf(after, groupsOf(filter)), limit }, filter);
});

export const getSession = direct(({ ids: { sessionId } }: OfSession, view) =>
  found('session', sessionId, readSession(view, sessionId)),
);
export const getTranscript = queued(({ ids: { sessionId }, query }: OfSession<TranscriptRange>, view) =>
  found('session', sessionId, readTranscript(view, sessionId, query)),
);
export const getDelivery = direct(({ ids: { sessionId } }: OfSession, view) =>
  found('session', sessionId, readDelivery(view, sessionId)),
);
export const getTurnAt = direct(({ ids: { sessionId }, query }: OfSession<{ at: number }>, view) =>
  found('session', sessionId, readTurnAt(view, sessionId, query.at)),
);
export const getTasks = queued(({ ids: { sessionId } }: OfSession, view) =>
  found('session', sessionId, readTasks(view, sessionId)),
);
export const getTask = queued(({ ids: { sessionId, taskId }, query }: OfTask, view) =>
  found('task', taskId, readTask(view, sessionId, taskId, query)),
);
export const getTaskOutput = queued(({ ids: { sessionId, taskId }, query }: OfTask, view) =>
  found('task', taskId, readTaskOutput(view, sessionId, taskId, query)),
);
export const getRequest = queued(({ ids: { sessionId, requestId } }: RequestContext<'sessionId' | 'requestId'>, view) =>
  found('request', requestId, readRequest(view, sessionId, requestId)),
);
export const getSessionObligations = direct(({ ids }: OfSession, view) => readSessionObligations(view, ids.sessionId));

export const getInbox = queued(async ({ query }: RequestContext<never, { query: InboxQuery }>, view) => {
  const { agent: agentId, session: sessionId, kind: kinds, q: words, limit, after, by } = query;
  const page = { after: cursorOf(after ?? LIST_START, INBOX_KINDS), limit, by };
  return searchInbox(view, page, { kinds, agentId, sessionId, words });
});
export const getCounts = queued(({ principal }: RequestContext, view, server) =>
  readCounts(view, inboxPerson(principal).id, server.now()),
);
export const getActivity = queued(({ query }: RequestContext<never, { query: { minutes: number } }>, view, server) =>
  readActivity(view, server.now(), query.minutes),
);

export const getAgents = queued(async ({ query }: RequestContext<never, { query: AgentsQuery }>, view) => {
  const { limit, after, q: words } = query;
  return searchAgents(view, { after: cursorOf(after ?? LIST_START, [AGENTS_GROUP]), limit }, words);
});
export const getAgent = queued(({ ids: { agentId } }: OfAgent, view) =>
  found('agent', agentId, readAgent(view, agentId)),
);
export const getParked = direct(({ ids, query }: OfAgent<ParkedPage>, view) => readParked(view, ids.agentId, query));
/** A runner receives its own ids of sessions. */
export const getObligations = direct(({ ids, principal }: OfAgent, view) =>
  readObligations(view, ids.agentId, principal.kind === 'runner'),
);

export const getWebhook = direct((_context: RequestContext, view, server) => readWebhook(view, server));
export const getWebhookDeliveries = direct(
  ({ query }: RequestContext<never, { query: { before: number | null; limit: number } }>, view) =>
    readWebhookDeliveries(view, query),
);

/** The level that the runner last reported, and the desired level. */
export const getLogLevel = direct(({ ids: { agentId } }: OfAgent, view) =>
  found('agent', agentId, readLogLevel(view, agentId)),
);
export const getLogComponents = queued(({ ids: { agentId } }: OfAgent, view) =>
  found('agent', agentId, readLogComponents(view, agentId)),
);
export const getLogLines = queued(async ({ ids: { agentId }, query }: OfAgent<LogQuery>, view) => {
  const wanted = { filter: await logFilterOf(query), place: logPlaceOf(query), limit: query.limit };
  return found('agent', agentId, readLogLines(view, agentId, wanted));
});
export const getLogDownload = direct(async (context: OfAgent<LogFilterQuery>, view) => {
  const { principal, query, ids } = context;
  const { agentId } = ids;
  const filter = await logFilterOf(query);
  const body = await found('agent', agentId, downloadLog(view, agentId, filter, principal.credentialId));
  const name = `${agentId}.log`;
  return markRedacted(
    new Response(abortableBody(body, context.whenOver), {
      headers: {
        'content-type': 'text/plain; charset=utf-8',
        'content-disposition': `attachment; filename="${name.replace(/[^\w.-]/g, '_')}"; filename*=UTF-8''${encodeURIComponent(name).replaceAll("'", '%27')}`,
        'cache-control': 'no-store',
      },
    }),
  );
});
