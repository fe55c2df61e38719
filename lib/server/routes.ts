import type * as z from 'zod';
import type { AccessSettings } from '@/lib/access/access-settings';
import type { Asked } from '@/lib/access/asked';
import { signIn, signInByForm, signOut } from '@/lib/access/sign-in';
import { postAgUi, postAgUiConnect } from '@/lib/agui/post-agui';
import { postAcceptReply } from '@/lib/commands/accept-reply';
import { postAck } from '@/lib/commands/acknowledge';
import { postRequestAnswer } from '@/lib/commands/answer-request';
import { putArrangement } from '@/lib/commands/arrange-session';
import { postInterrupt, postSessionEnd, postTaskStop, postTaskWake } from '@/lib/commands/ask-agent';
import { getCommands } from '@/lib/commands/get-commands';
import { postMarks } from '@/lib/commands/mark-inbox';
import { postAttachment } from '@/lib/commands/post-attachment';
import { putLogLevel } from '@/lib/commands/put-log-level';
import { putRetirement } from '@/lib/commands/retire-agent';
import { postInsightsSeen } from '@/lib/commands/see-insights';
import { postMessage } from '@/lib/commands/send-message';
import { postAssign, postDiscard } from '@/lib/commands/settle-parked';
import { postWaive } from '@/lib/commands/waive-obligation';
import { putWakeRule } from '@/lib/commands/wake-rule';
import { getStream } from '@/lib/fan-out/get-stream';
import { postEvents } from '@/lib/ingest/post-events';
import * as body from '@/lib/protocol/commands';
import * as query from '@/lib/protocol/queries';
import { healthz, type Readiness, readyz } from '@/lib/queries/health';
import { getAttachment } from '@/lib/queries/read-attachment';
import * as read from '@/lib/queries/read-routes';
import { postWebhookTest } from '@/lib/webhook/post-webhook-test';
import type { ServerParts } from './server-parts';

export const METHODS = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type Method = (typeof METHODS)[number];

/** What open routes get: it works while the database is away. */
export interface OpenServer {
  settings(): AccessSettings;
  parts(): Promise<ServerParts>;
  readiness: Readiness;
}

export type Schema = z.ZodObject<z.ZodRawShape>;
export type Ids = Record<string, string>;

/** What a route accepts besides the ids in its path. If there are several bodies, any of them. */
interface Takes<Query extends Schema, Body extends Schema> {
  query?: Query;
  bodies?: readonly Body[];
}

/** @returns a model, which is the answer's JSON, or an answer of another kind */
type Handler<Id extends string, Query, Body> = (
  asked: Asked<Id, { query: Query; body: Body }>,
  server: ServerParts,
) => Promise<object>;
type OpenHandler = (request: Request, server: OpenServer) => Promise<Response>;

interface RouteBase {
  method: Method;
  /** `:name` stands for one part of the path, which the handler is given decoded. */
  pattern: string;
}

export interface OpenRoute extends RouteBase {
  access: 'open';
  handler: OpenHandler;
}

export interface ApiRoute extends RouteBase {
  access: 'signed-in' | 'program';
  takes: Takes<Schema, Schema>;
  handler: Handler<string, unknown, unknown>;
  /** The status of its answers: 201 for what is kept from then on, 202 if the work is still to be done. */
  status: 200 | 201 | 202;
}

/**
 * One row of the table. `signed-in`: the bearer token, or the cookie of a page of ours; `program`: the bearer token
 * only;
 * `open`: anybody, as far as the handler lets them.
 */
export type Route = OpenRoute | ApiRoute;

const signedIn = api('signed-in');
const program = api('program');
/** Asks an agent to do something: the answer says that this is queued. */
const asking = api('signed-in', 202);
const keeping = api('signed-in', 201);

/** Everything that is not a page. PROTOCOL.md says what each route is asked and answers. */
export const ROUTES: readonly Route[] = [
  open('GET', '/sign-in', (request, { settings }) => signIn(request, settings())),
  open('POST', '/sign-in', (request, { settings }) => signInByForm(request, settings())),
  open('POST', '/sign-out', (request, { settings }) => signOut(request, settings())),
  ...['', '/api/v1'].flatMap((base) =>
    (['GET', 'HEAD'] as const).flatMap((method) => [
      open(method, `${base}/healthz`, healthz),
      open(method, `${base}/readyz`, (_request, { parts, readiness }) => readyz(parts, readiness)),
    ]),
  ),

  program('POST', '/events', ({ request }, server) => postEvents(request, server)),
  program('GET', '/agents/:agentId/commands', getCommands),
  program('POST', '/agents/:agentId/commands/:commandId/ack', postAck, { bodies: [body.ackSchema] }),

  signedIn('GET', '/stream', getStream),
  signedIn('GET', '/sessions', read.getSessions, { query: query.sessionsQuery }),
  signedIn('GET', '/sessions/:sessionId', read.getSession),
  signedIn('GET', '/sessions/:sessionId/transcript', read.getTranscript, { query: query.transcriptQuery }),
  signedIn('GET', '/sessions/:sessionId/delivery', read.getDelivery),
  signedIn('GET', '/sessions/:sessionId/turn-at', read.getTurnAt, { query: query.turnAtQuery }),
  signedIn('GET', '/sessions/:sessionId/tasks', read.getTasks),
  signedIn('GET', '/sessions/:sessionId/tasks/:taskId', read.getTask, { query: query.taskQuery }),
  signedIn('GET', '/sessions/:sessionId/tasks/:taskId/output', read.getTaskOutput, { query: query.taskOutputQuery }),
  signedIn('GET', '/sessions/:sessionId/requests/:requestId', read.getRequest),
  signedIn('GET', '/inbox', read.getInbox, { query: query.inboxQuery }),
  signedIn('GET', '/activity', read.getActivity, { query: query.activityQuery }),
  signedIn('GET', '/agents', read.getAgents, { query: query.agentsQuery }),
  signedIn('GET', '/agents/:agentId', read.getAgent),
  signedIn('GET', '/agents/:agentId/parked', read.getParked, { query: query.parkedQuery }),
  signedIn('GET', '/agents/:agentId/reply-obligations', read.getObligations),
  signedIn('GET', '/sessions/:sessionId/obligations', read.getSessionObligations),
  signedIn('GET', '/agents/:agentId/log-level', read.getLogLevel),
  signedIn('GET', '/agents/:agentId/logs', read.getLogLines, { query: query.logQuery }),
  signedIn('GET', '/agents/:agentId/logs/components', read.getLogComponents),
  signedIn('GET', '/agents/:agentId/logs/download', read.getLogDownload, { query: query.logFilterQuery }),

  signedIn('POST', '/agui/:agentId', postAgUi, { query: query.agUiQuery }),
  signedIn('POST', '/agui/:agentId/connect', postAgUiConnect, { query: query.agUiQuery }),

  asking('POST', '/sessions/:sessionId/messages', postMessage, { bodies: [body.sendMessageSchema] }),
  keeping('POST', '/sessions/:sessionId/attachments', postAttachment, { query: query.attachmentQuery }),
  signedIn('GET', '/attachments/:hash', getAttachment, { query: query.attachmentBytesQuery }),
  asking('POST', '/sessions/:sessionId/interrupt', postInterrupt, { bodies: [body.interruptSchema] }),
  asking('POST', '/sessions/:sessionId/end', postSessionEnd, { bodies: [body.endSessionSchema] }),
  asking('POST', '/sessions/:sessionId/tasks/:taskId/stop', postTaskStop, { bodies: [body.stopTaskSchema] }),
  asking('POST', '/sessions/:sessionId/tasks/:taskId/wake', postTaskWake, { bodies: [body.wakeTaskSchema] }),
  asking('PUT', '/sessions/:sessionId/wake-rule', putWakeRule, { bodies: [body.setWakeRuleSchema] }),
  asking('POST', '/sessions/:sessionId/requests/:requestId', postRequestAnswer, {
    bodies: [body.decidePermissionSchema, body.answerQuestionSchema],
  }),
  asking('PUT', '/agents/:agentId/log-level', putLogLevel, { bodies: [body.setLogLevelSchema] }),
  signedIn('GET', '/webhook', read.getWebhook),
  signedIn('GET', '/webhook/deliveries', read.getWebhookDeliveries, { query: query.webhookDeliveriesQuery }),
  signedIn('POST', '/webhook/test', postWebhookTest),
  signedIn('POST', '/inbox/marks', postMarks, { bodies: [body.markInboxSchema] }),
  signedIn('PUT', '/sessions/:sessionId/arrangement', putArrangement, { bodies: [body.arrangeSchema] }),
  signedIn('POST', '/sessions/:sessionId/obligations/:messageId/waive', postWaive, { bodies: [body.waiveSchema] }),
  signedIn('POST', '/sessions/:sessionId/obligations/:messageId/accept', postAcceptReply, {
    bodies: [body.acceptReplySchema],
  }),
  signedIn('PUT', '/agents/:agentId/retirement', putRetirement, { bodies: [body.retireSchema] }),
  signedIn('POST', '/agents/:agentId/insights/seen', postInsightsSeen, { bodies: [body.seeInsightsSchema] }),
  signedIn('POST', '/agents/:agentId/parked/:position/assign', postAssign, { bodies: [body.assignParkedSchema] }),
  signedIn('POST', '/agents/:agentId/parked/:position/discard', postDiscard, { bodies: [body.discardParkedSchema] }),
];

type IdIn<Path extends string> = Path extends `${string}/:${infer Id}/${infer Rest}`
  ? Id | IdIn<`/${Rest}`>
  : Path extends `${string}/:${infer Id}`
    ? Id
    : never;

function api(access: ApiRoute['access'], status: ApiRoute['status'] = 200) {
  return <Path extends string, Query extends Schema, Body extends Schema>(
    method: Method,
    path: Path,
    handler: Handler<IdIn<Path>, z.infer<Query>, z.infer<Body>>,
    takes: Takes<Query, Body> = {},
  ): ApiRoute => ({
    method,
    pattern: `/api/v1${path}`,
    access,
    handler: handler as ApiRoute['handler'],
    takes,
    status,
  });
}

function open(method: Method, pattern: string, handler: OpenHandler): OpenRoute {
  return { method, pattern, access: 'open', handler };
}
