import { changeMemberSchema, newEmbedSchema, newTokenSchema } from '@interlude/protocol/access';
import * as body from '@interlude/protocol/commands';
import * as query from '@interlude/protocol/queries';
import type { Permission } from '@interlude/protocol/scope';
import type * as z from 'zod';
import { getAudit, getAuditCheck, getAuditExport } from '@/lib/server/access/audit-log';
import { postEmbedToken } from '@/lib/server/access/embeds';
import * as credential from '@/lib/server/access/manage-credentials';
import { getMembers, putMember } from '@/lib/server/access/manage-members';
import {
  backChannelLogout,
  finishProviderSignIn,
  type ProviderSignInContext,
  startProviderSignIn,
} from '@/lib/server/access/provider-sign-in';
import type { RequestContext } from '@/lib/server/access/request-context';
import { signIn, signInByForm, signOut } from '@/lib/server/access/sign-in';
import { postAgUi, postAgUiConnect } from '@/lib/server/agui/post-agui';
import { postRequestAnswer } from '@/lib/server/commands/answer-request';
import { putArrangement, putRetirement } from '@/lib/server/commands/arrange';
import { postAttachment } from '@/lib/server/commands/attachments';
import { getCommands } from '@/lib/server/commands/command-hub';
import { COMMANDS, DECISIONS } from '@/lib/server/commands/command-table';
import { putLogLevel, putWakeRule } from '@/lib/server/commands/desired-state';
import { postInsightsSeen, postMarks } from '@/lib/server/commands/mark-inbox';
import { postAssign, postDiscard } from '@/lib/server/commands/parked-records';
import {
  postInterrupt,
  postMessage,
  postSessionEnd,
  postTaskStop,
  postTaskWake,
} from '@/lib/server/commands/session-commands';
import { postAck } from '@/lib/server/commands/settle-command';
import { postAcceptReply, postWaive } from '@/lib/server/commands/settle-obligations';
import { getStream } from '@/lib/server/fan-out/get-stream';
import { postEvents } from '@/lib/server/ingest/post-events';
import { healthz, type Readiness, readyz } from '@/lib/server/queries/health';
import { getAttachment } from '@/lib/server/queries/read-attachment';
import * as read from '@/lib/server/queries/read-routes';
import { getStorage } from '@/lib/server/queries/read-storage';
import { getMetrics } from '@/lib/server/telemetry/metrics';
import { postWebhookTest } from '@/lib/server/webhook/call-webhook';
import { getOpenApi } from './open-api/get-open-api';
import { runDueWork, type ServerParts } from './server-parts';

export const METHODS = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type Method = (typeof METHODS)[number];

/** Dependencies of open routes; usable while the database is unavailable. */
interface OpenServer extends ProviderSignInContext {
  parts(): Promise<ServerParts>;
  readiness: Readiness;
}

export type Schema = z.ZodObject<z.ZodRawShape>;
export type Ids = Record<string, string>;

/** Accepted query and bodies; any of several bodies. */
interface Accepts<Query extends Schema, Body extends Schema> {
  query?: Query;
  bodies?: readonly Body[];
}

/** @returns a model, encoded as JSON, or a finished Response */
type Handler<Id extends string, Query, Body> = (
  context: RequestContext<Id, { query: Query; body: Body }>,
  server: ServerParts,
) => Promise<object>;
type OpenHandler = (request: Request, server: OpenServer) => Promise<Response>;

interface RouteBase {
  method: Method;
  /** `:name` matches one path segment; handlers get it decoded. */
  pattern: string;
}

interface OpenRoute extends RouteBase {
  access: 'open';
  handler: OpenHandler;
}

export interface ApiRoute extends RouteBase {
  access: Permission;
  accepts: Accepts<Schema, Schema>;
  handler: Handler<string, unknown, unknown>;
  /** Success status: 201 for a created resource, 202 for queued work. */
  status: 200 | 201 | 202;
  /** The action's name in the audit; null for reads. */
  action: string | null;
}

/**
 * A row of the route table. `open` leaves the access check to the handler; otherwise the sender's role needs the
 * permission. A row without `access` does not compile.
 */
export type Route = OpenRoute | ApiRoute;

const reads = api('read');
const speaks = api('speak');
/** For runners, about their own agents. */
const attends = api('attend');
const itself = api('self');
const administers = api('administer');
/** Decisions by operators. */
const acts = (action: string) => api('act', 200, action);
type Row = (typeof COMMANDS)[keyof typeof COMMANDS] | (typeof DECISIONS)[keyof typeof DECISIONS];

/** Routes from the command table. Kinds with the same path are one route, which accepts the body of each. */
const fromTable =
  <Table extends Record<string, Row>>(table: Table, status: 200 | 202) =>
  <Kind extends keyof Table>(
    kinds: readonly Kind[],
    handler: Handler<IdIn<Table[Kind]['path']>, unknown, z.infer<Table[Kind]['body']>>,
  ): ApiRoute => {
    const rows = kinds.map((kind) => table[kind]) as Row[];
    const [{ method, path, action }] = rows as [Row];
    const route = api('act', status, action)(method, path, handler as ApiRoute['handler']);
    return { ...route, accepts: { bodies: rows.map(({ body }) => body) } };
  };
/** Commands for an agent. The response confirms that they are queued. */
const queues = fromTable(COMMANDS, 202);
/** Takes effect before the response. */
const decides = fromTable(DECISIONS, 200);

/** Every route except pages. PROTOCOL.md documents each. */
export const ROUTES: readonly Route[] = [
  open('GET', '/sign-in', (request, server) => signIn(request, server)),
  open('POST', '/sign-in', (request, server) => signInByForm(request, server)),
  open('GET', '/sign-in/provider', (request, server) => startProviderSignIn(request, server)),
  open('GET', '/sign-in/callback', (request, server) => finishProviderSignIn(request, server)),
  open('POST', '/sign-in/back-channel-logout', (request, server) => backChannelLogout(request, server)),
  open('POST', '/sign-out', (request, server) => signOut(request, server)),
  ...['', '/api/v1'].flatMap((base) =>
    (['GET', 'HEAD'] as const).flatMap((method) => [
      open(method, `${base}/healthz`, healthz),
      open(method, `${base}/readyz`, (_request, { settings, parts, readiness }) => {
        // an invalid setting is not the database's failure
        settings();
        return readyz(parts, readiness);
      }),
    ]),
  ),

  { ...api('observe')('GET', '/metrics', getMetrics), pattern: '/metrics' },
  itself('GET', '/openapi.json', () => getOpenApi(ROUTES)),
  itself('GET', '/me', credential.getMe),
  itself('GET', '/me/sign-ins', credential.getOwnSignIns),
  api('self', 200, 'sign out elsewhere')('DELETE', '/me/sign-ins', credential.deleteOwnSignIns),
  administers('GET', '/credentials', credential.getCredentials),
  api('administer', 201, 'create token')('POST', '/tokens', credential.postToken, { bodies: [newTokenSchema] }),
  api('administer', 200, 'revoke credential')('DELETE', '/credentials/:credentialId', credential.deleteCredential),
  api('administer', 201, 'create sign-in link')('POST', '/sign-in-codes', credential.postSignInCode),
  administers('GET', '/members', getMembers),
  api('administer', 200, 'change member')('PUT', '/members/:memberId', putMember, { bodies: [changeMemberSchema] }),
  api('issue', 201, 'create embed')('POST', '/embed-tokens', postEmbedToken, { bodies: [newEmbedSchema] }),
  api('tend')('GET', '/cron', (_context, server) => runDueWork(server)),
  administers('GET', '/audit', getAudit, { query: query.auditQuery }),
  administers('GET', '/audit/export', getAuditExport, { query: query.auditQuery }),
  administers('GET', '/audit/check', getAuditCheck),
  administers('GET', '/storage', getStorage),

  speaks('POST', '/events', postEvents),
  speaks('GET', '/agents/:agentId/commands', getCommands),
  speaks('POST', '/agents/:agentId/commands/:commandId/ack', postAck, { bodies: [body.ackSchema] }),

  reads('GET', '/stream', getStream),
  reads('GET', '/sessions', read.getSessions, { query: query.sessionsQuery }),
  reads('GET', '/sessions/:sessionId', read.getSession),
  reads('GET', '/sessions/:sessionId/transcript', read.getTranscript, { query: query.transcriptQuery }),
  reads('GET', '/sessions/:sessionId/delivery', read.getDelivery),
  reads('GET', '/sessions/:sessionId/turn-at', read.getTurnAt, { query: query.turnAtQuery }),
  reads('GET', '/sessions/:sessionId/tasks', read.getTasks),
  reads('GET', '/sessions/:sessionId/tasks/:taskId', read.getTask, { query: query.taskQuery }),
  reads('GET', '/sessions/:sessionId/tasks/:taskId/output', read.getTaskOutput, { query: query.taskQuery }),
  reads('GET', '/sessions/:sessionId/requests/:requestId', read.getRequest),
  reads('GET', '/inbox', read.getInbox, { query: query.inboxQuery }),
  reads('GET', '/counts', read.getCounts),
  reads('GET', '/activity', read.getActivity, { query: query.activityQuery }),
  reads('GET', '/agents', read.getAgents, { query: query.agentsQuery }),
  reads('GET', '/agents/:agentId', read.getAgent),
  reads('GET', '/agents/:agentId/parked', read.getParked, { query: query.parkedQuery }),
  attends('GET', '/agents/:agentId/reply-obligations', read.getObligations),
  reads('GET', '/sessions/:sessionId/obligations', read.getSessionObligations),
  reads('GET', '/agents/:agentId/log-level', read.getLogLevel),
  reads('GET', '/agents/:agentId/logs', read.getLogLines, { query: query.logQuery }),
  reads('GET', '/agents/:agentId/logs/components', read.getLogComponents),
  reads('GET', '/agents/:agentId/logs/download', read.getLogDownload, { query: query.logFilterQuery }),

  acts('run by AG-UI')('POST', '/agui/:agentId', postAgUi, { query: query.agUiQuery }),
  acts('connect by AG-UI')('POST', '/agui/:agentId/connect', postAgUiConnect, { query: query.agUiQuery }),

  queues(['message'], postMessage),
  api('act', 201, 'attach file')('POST', '/sessions/:sessionId/attachments', postAttachment, {
    query: query.attachmentQuery,
  }),
  attends('GET', '/attachments/:hash', getAttachment, { query: query.attachmentBytesQuery }),
  queues(['interrupt'], postInterrupt),
  queues(['session.end'], postSessionEnd),
  queues(['task.stop'], postTaskStop),
  queues(['task.wake'], postTaskWake),
  queues(['wake-rule.set'], putWakeRule),
  queues(['permission.decision', 'question.answer'], postRequestAnswer),
  queues(['log-level.set'], putLogLevel),
  reads('GET', '/webhook', read.getWebhook),
  reads('GET', '/webhook/deliveries', read.getWebhookDeliveries, { query: query.webhookDeliveriesQuery }),
  acts('test webhook')('POST', '/webhook/test', postWebhookTest),
  decides(['inbox.mark'], postMarks),
  decides(['session.arrange'], putArrangement),
  decides(['obligation.waive'], postWaive),
  decides(['obligation.accept'], postAcceptReply),
  decides(['agent.retire'], putRetirement),
  decides(['insights.see'], postInsightsSeen),
  decides(['parked.assign'], postAssign),
  decides(['parked.discard'], postDiscard),
];

type IdIn<Path extends string> = Path extends `${string}/:${infer Id}/${infer Rest}`
  ? Id | IdIn<`/${Rest}`>
  : Path extends `${string}/:${infer Id}`
    ? Id
    : never;

function api(access: Permission, status: ApiRoute['status'] = 200, action: string | null = null) {
  return <Path extends string, Query extends Schema, Body extends Schema>(
    method: Method,
    path: Path,
    handler: Handler<IdIn<Path>, z.infer<Query>, z.infer<Body>>,
    accepts: Accepts<Query, Body> = {},
  ): ApiRoute => ({
    method,
    pattern: `/api/v1${path}`,
    access,
    handler: handler as ApiRoute['handler'],
    accepts,
    status,
    action,
  });
}

function open(method: Method, pattern: string, handler: OpenHandler): OpenRoute {
  return { method, pattern, access: 'open', handler };
}
