import type * as z from 'zod';
import type { AccessPolicy } from '@/lib/access/access-policy';
import { signIn, signInByForm, signOut } from '@/lib/access/sign-in';
import { postAck } from '@/lib/commands/acknowledge';
import { postRequestAnswer } from '@/lib/commands/answer-request';
import { postInterrupt, postTaskStop } from '@/lib/commands/ask-agent';
import { getCommands } from '@/lib/commands/get-commands';
import { putLogLevel } from '@/lib/commands/put-log-level';
import { postInsightsSeen, seeInsightsSchema } from '@/lib/commands/see-insights';
import { postMessage } from '@/lib/commands/send-message';
import { postAssign, postDiscard } from '@/lib/commands/settle-parked';
import { postWaive } from '@/lib/commands/waive-obligation';
import { stream } from '@/lib/fan-out/stream';
import { postEvents } from '@/lib/ingest/post-events';
import {
  ackSchema,
  answerQuestionSchema,
  assignParkedSchema,
  decidePermissionSchema,
  discardParkedSchema,
  interruptSchema,
  sendMessageSchema,
  setLogLevelSchema,
  stopTaskSchema,
  waiveSchema,
} from '@/lib/protocol/commands';
import { healthz, type Readiness, readyz } from '@/lib/queries/health';
import * as read from '@/lib/queries/read-routes';
import type { ServerParts } from './server-parts';

export const METHODS = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type Method = (typeof METHODS)[number];

/** What there is also while the database is away. */
export interface OpenServer {
  policy(): AccessPolicy;
  parts(): Promise<ServerParts>;
  readiness: Readiness;
}

type BodySchema = z.ZodObject<z.ZodRawShape>;
type Handler = (request: Request, server: ServerParts, ids: Record<string, string>) => Promise<Response>;
type OpenHandler = (request: Request, server: OpenServer) => Promise<Response>;

interface RouteBase {
  method: Method;
  /** `:name` stands for one part of the path, which the handler is given decoded. */
  pattern: string;
  /** The schemas by which the handler takes the body: any of them will do. */
  bodies: readonly BodySchema[];
}

/**
 * One row of the table. `signed-in`: the bearer token, or the cookie of a page of ours; `program`: the bearer token only;
 * `open`: anybody, as far as the handler lets them.
 */
export type Route = RouteBase &
  ({ access: 'open'; handler: OpenHandler } | { access: 'signed-in' | 'program'; handler: Handler });

/** Everything that is no page. PROTOCOL.md says what each route is asked and answers. */
export const ROUTES: readonly Route[] = [
  open('GET', '/sign-in', (request, { policy }) => signIn(request, policy())),
  open('POST', '/sign-in', (request, { policy }) => signInByForm(request, policy())),
  open('POST', '/sign-out', (request, { policy }) => signOut(request, policy())),
  ...['', '/api/v1'].flatMap((base) =>
    (['GET', 'HEAD'] as const).flatMap((method) => [
      open(method, `${base}/healthz`, healthz),
      open(method, `${base}/readyz`, (_request, { parts, readiness }) => readyz(parts, readiness)),
    ]),
  ),

  program('POST', '/events', postEvents),
  program('GET', '/agents/:agentId/commands', getCommands),
  program('POST', '/agents/:agentId/commands/:commandId/ack', postAck, ackSchema),

  signedIn('GET', '/stream', stream),
  signedIn('GET', '/sessions', read.getSessions),
  signedIn('GET', '/sessions/:sessionId', read.getSession),
  signedIn('GET', '/sessions/:sessionId/transcript', read.getTranscript),
  signedIn('GET', '/sessions/:sessionId/turn-at', read.getTurnAt),
  signedIn('GET', '/sessions/:sessionId/tasks', read.getTasks),
  signedIn('GET', '/sessions/:sessionId/tasks/:taskId', read.getTask),
  signedIn('GET', '/agents', read.getAgents),
  signedIn('GET', '/agents/:agentId', read.getAgent),
  signedIn('GET', '/agents/:agentId/parked', read.getParked),
  signedIn('GET', '/agents/:agentId/reply-obligations', read.getObligations),
  signedIn('GET', '/agents/:agentId/log-level', read.getLogLevel),
  signedIn('GET', '/agents/:agentId/logs', read.getLogLines),
  signedIn('GET', '/agents/:agentId/logs/components', read.getLogComponents),
  signedIn('GET', '/agents/:agentId/logs/download', read.getLogDownload),

  signedIn('POST', '/sessions/:sessionId/messages', postMessage, sendMessageSchema),
  signedIn('POST', '/sessions/:sessionId/interrupt', postInterrupt, interruptSchema),
  signedIn('POST', '/sessions/:sessionId/tasks/:taskId/stop', postTaskStop, stopTaskSchema),
  signedIn(
    'POST',
    '/sessions/:sessionId/requests/:requestId',
    postRequestAnswer,
    decidePermissionSchema,
    answerQuestionSchema,
  ),
  signedIn('POST', '/sessions/:sessionId/obligations/:messageId/waive', postWaive, waiveSchema),
  signedIn('PUT', '/agents/:agentId/log-level', putLogLevel, setLogLevelSchema),
  signedIn('POST', '/agents/:agentId/insights/seen', postInsightsSeen, seeInsightsSchema),
  signedIn('POST', '/agents/:agentId/parked/:position/assign', postAssign, assignParkedSchema),
  signedIn('POST', '/agents/:agentId/parked/:position/discard', postDiscard, discardParkedSchema),
];

function signedIn(method: Method, path: string, handler: Handler, ...bodies: BodySchema[]): Route {
  return { method, pattern: `/api/v1${path}`, access: 'signed-in', handler, bodies };
}

function program(method: Method, path: string, handler: Handler, ...bodies: BodySchema[]): Route {
  return { method, pattern: `/api/v1${path}`, access: 'program', handler, bodies };
}

function open(method: Method, pattern: string, handler: OpenHandler): Route {
  return { method, pattern, access: 'open', handler, bodies: [] };
}
