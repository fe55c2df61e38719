import { AppError, withErrors } from '@interlude/protocol/errors';
import type { OpenApiDocument } from '@interlude/protocol/open-api';
import { redactedFor } from '@interlude/protocol/redaction/outlets';
import { requestIdOf } from '@interlude/protocol/request-id';
import { isLogged, redactServerLog, serverLog } from '@interlude/protocol/server-log.mjs';
import { processMetrics } from '#process-metrics';
import { type ContextKind, checkContext, type Database, databaseOptions, openDatabase } from '@/db/client';
import {
  type AccessSettings,
  accessSettings,
  redactedRoles,
  sessionIdleMs,
  sessionMs,
} from '@/lib/server/access/access-settings';
import { actOf } from '@/lib/server/access/audited';
import { authenticate, authenticateProgram, signedIn } from '@/lib/server/access/authenticate';
import { embedOrigins } from '@/lib/server/access/embed-origins';
import { LoginThrottle } from '@/lib/server/access/login-throttle';
import { oidcSettings } from '@/lib/server/access/oidc/oidc-settings';
import { OidcSignIn } from '@/lib/server/access/oidc/oidc-sign-in';
import { preflightAnswer, readableByOpaque } from '@/lib/server/access/opaque-origin';
import { OpenStreams } from '@/lib/server/access/open-streams';
import { may, type Principal, requirePermission } from '@/lib/server/access/principal';
import type { ProviderServer } from '@/lib/server/access/provider-sign-in';
import { KeptAnswers } from '@/lib/server/access/server-context';
import { SIGNED_OUT_PATH } from '@/lib/server/access/sign-in';
import { asResponse, StreamAnswer } from '@/lib/server/access/stream-answer';
import { webhookSetting } from '@/lib/server/access/webhook-settings';
import { replyOverdueMs } from '@/lib/server/commands/reply-settings';
import { undeliveredMs } from '@/lib/server/commands/undelivered-results';
import { logRetention } from '@/lib/server/log-store/remove-old-lines';
import { Readiness } from '@/lib/server/queries/health';
import { historyRetention } from '@/lib/server/retention/retention-settings';
import type { Telemetry } from '@/lib/server/telemetry/telemetry';
import type { Tracing } from '@/lib/server/telemetry/tracing';
import { answerRoute } from './answer-route';
import { type Found, findRoute } from './find-route';
import { describeApi } from './open-api/get-open-api';
import { type ApiRoute, type Ids, ROUTES } from './routes';
import { closeParts, keepParts, keepStreamed, type ServerParts, serverParts } from './server-parts';

/** How often to try a database that was away when the server started. */
const OPEN_AGAIN_MS = 5_000;

/** A stream says `bye` before a host cuts it off, most of them after five minutes. */
const PER_REQUEST_STREAM_MS = 280_000;

/** The whole of the server behind HTTP. */
export interface Server {
  /** Answers everything that is not a page. Never rejects. */
  handle(request: Request): Promise<Response>;
  /** The same for the front door, which opens a StreamAnswer over the connection itself. */
  answer(request: Request): Promise<Response>;
  /** Whether a request carries a good credential. */
  knows(request: Request): Promise<boolean>;
  /** Whose sign-in a page's request carries; null for nobody's. */
  visitor(headers: Headers): Promise<Principal | null>;
  /** From now on commands expire, silent runners are missed and logs are trimmed, without any request. */
  start(): Promise<void>;
  /**
   * Says `bye` to every stream, accepts no new ones, and closes the database after the waiting writes. Calling it twice
   * does no harm.
   *
   * @param answered what to wait for before the database is closed; requests are still answered meanwhile
   */
  close(answered?: Promise<void>): Promise<void>;
  /** @throws AppError `unavailable` without a token or while the database can't be opened; the next call tries again */
  parts(): Promise<ServerParts>;
  /** The API as it is, for the page that shows it. */
  description(): Promise<OpenApiDocument>;
}

/** What a process keeps from one request to the next: nothing in it is under way. */
export class ProcessMemory {
  readonly env: Record<string, string | undefined>;
  readonly throttle = new LoginThrottle();
  /** Whether the database's schema was seen to be this version's. */
  isSchemaKnown = false;
  readonly readiness: Readiness;
  readonly kept: KeptAnswers;
  #settings: AccessSettings | null = null;
  #provider: { signIn: OidcSignIn | null } | null = null;
  readonly #kind: ContextKind;

  constructor(env: Record<string, string | undefined>, kind: ContextKind) {
    this.env = env;
    this.#kind = kind;
    this.readiness = new Readiness({ isShared: kind === 'shared' });
    this.kept = new KeptAnswers(kind === 'shared');
  }

  /** @throws AppError `unavailable` for settings that make no sense */
  settings(): AccessSettings {
    this.#settings ??= accessSettings(this.env);
    return this.#settings;
  }

  /** @throws AppError `unavailable` for settings that make no sense */
  provider(): OidcSignIn | null {
    this.#provider ??= { signIn: newProvider(this.env, this.settings(), this.#kind) };
    return this.#provider.signIn;
  }
}

/**
 * Makes the server that the environment describes. Nothing is opened yet.
 *
 * Ordering: access is decided before anything is opened or read.
 * Failure: a database that can't be opened is tried again, by the next request and by `start`.
 *
 * @param kind of `perRequest`, it answers one request, and what it streams is kept up to date while that is open
 */
export function createServer(
  env: Record<string, string | undefined>,
  kind: ContextKind = 'shared',
  memory = new ProcessMemory(env, kind),
): Server {
  const lasts = kind === 'shared';
  redactServerLog((text) => redactedFor('server-log', text));
  let opening: Promise<ServerParts> | null = null;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let closing: Promise<void> | null = null;
  /** Who is told of each answer, once there is a database. */
  let told: Telemetry | null = null;
  let traces: Tracing | null = null;

  const settings = () => memory.settings();
  const door: ProviderServer = {
    settings,
    throttle: memory.throttle,
    credentials: async () => (await parts()).credentials,
    context: () => parts(),
    provider: () => {
      const signIn = memory.provider();
      if (signIn !== null) return signIn;
      throw new AppError('not_found', 'No identity provider is set here. See docs/sign-in.md, or sign in with a link.');
    },
    endAtProvider: async () => (await memory.provider()?.endSessionUrl(SIGNED_OUT_PATH)) ?? null,
  };
  const parts = () => {
    opening ??= open().catch((error) => {
      opening = null;
      throw error;
    });
    return opening;
  };

  async function open(): Promise<ServerParts> {
    const access = settings();
    checkContext(env, kind);
    // settings by which nobody could sign in are told at the start, not to whoever tries
    const oidc = memory.provider();
    const seconds = Number(env.INTERLUDE_STREAM_MAX_SECONDS);
    const streamMaxMs = seconds > 0 ? seconds * 1000 : lasts ? null : PER_REQUEST_STREAM_MS;
    const { webhook, problem: webhookProblem } = webhookSetting(env);
    const opened = await openDatabase({
      ...databaseOptions(env),
      isKnown: memory.isSchemaKnown,
      isAlone: !lasts,
    });
    memory.isSchemaKnown = !lasts;
    traces = await tracesOf(env, opened);
    const listeners = traces?.listeners ?? [];
    const count = lasts ? processMetrics : () => null;
    const all: ServerParts = serverParts(
      {
        ...access,
        database: opened,
        kind,
        kept: memory.kept,
        ...(lasts
          ? {}
          : {
              streams: new OpenStreams(
                () => keepStreamed(all),
                () => void close(),
              ),
            }),
        streamMaxMs,
        replyOverdueMs: replyOverdueMs(env),
        undeliveredMs: undeliveredMs(env),
        webhook,
        webhookProblem,
        sessionIdleMs: sessionIdleMs(env),
        sessionMs: sessionMs(env),
        oidc,
        embedOrigins: embedOrigins(env),
        redactedRoles: redactedRoles(env),
      },
      { logs: logRetention(env), history: historyRetention(env) },
      { count, listeners },
    );
    told = all.telemetry ?? null;
    if (lasts && closing === null) keepParts(all);
    return all;
  }

  async function answer(request: Request, found: Found): Promise<Response> {
    if (found.kind === 'route') {
      const { route, ids } = found;
      if (route.access === 'open') return route.handler(request, { ...door, parts, readiness: memory.readiness });
      const principal = await (route.access === 'speak' ? authenticateProgram : authenticate)(request, door);
      if (!may(principal, route.access)) await noteForbidden(request, principal, route, ids);
      requirePermission(principal, route.access);
      const all = await parts();
      // nobody has looked since the last request what is due by now
      if (!lasts && !isTelling(route)) await all.commands.sweepDue();
      return answerRoute(route, request, all, ids, principal);
    }
    if (found.kind === 'nothing' || !found.isOpen) await authenticate(request, door);
    if (found.kind === 'nothing') {
      throw new AppError(
        'not_found',
        `There is nothing at ${new URL(request.url).pathname}. PROTOCOL.md lists the routes.`,
      );
    }
    const { allow } = found;
    const message = `${request.method} is not allowed here. Use ${allow}.`;
    throw new AppError('method_not_allowed', message, { headers: { allow } });
  }

  /** Of what is decided, it is noted who tried; of what is only read, and of what runners try, it is not. */
  async function noteForbidden(request: Request, principal: Principal, { action }: ApiRoute, ids: Ids): Promise<void> {
    if (action === null || principal.kind === 'runner') return;
    const { refusals } = await parts();
    await refusals.note(actOf(request, principal, action, ids, null), new AppError('forbidden', action));
  }

  const respond = withErrors(answer);
  const answered = withErrors(async (request: Request) => {
    const beganAt = performance.now();
    const found = findRoute(request.method, new URL(request.url).pathname);
    const response = await respond(request, found);
    const { method } = request;
    const route = found.kind === 'route' ? found.route.pattern : null;
    const [{ status }, tookMs] = [response, performance.now() - beganAt];
    told?.answered?.({ method, route, status, tookMs });
    if (isLogged('debug')) {
      const requestId = requestIdOf(request);
      serverLog('debug', `${method} ${route ?? 'nothing'} ${status}`, { requestId, method, route, status, tookMs });
    }
    // nothing is done after the answer of a process that may freeze
    if (!lasts) await (response instanceof StreamAnswer ? traces?.flush() : traces?.close());
    return response;
  });
  const safely = async (request: Request) =>
    preflightAnswer(request) ?? readableByOpaque(request, await answered(request));

  async function start(): Promise<void> {
    await parts().catch(() => {
      retry = setTimeout(start, OPEN_AGAIN_MS);
      retry.unref?.();
    });
  }

  async function end(answered?: Promise<void>): Promise<void> {
    clearTimeout(retry);
    const all = await opening?.catch(() => null);
    if (!all) return;
    closeParts(all);
    await answered;
    await traces?.close();
    await all.database.close();
  }

  function close(answered?: Promise<void>): Promise<void> {
    closing ??= end(answered);
    return closing;
  }

  return {
    handle: async (request) => asResponse(await safely(request)),
    answer: safely,
    knows: (request) =>
      authenticate(request, door).then(
        () => true,
        () => false,
      ),
    visitor: (headers) => signedIn(headers, door),
    start,
    parts,
    description: () => describeApi(ROUTES),
    close,
  };
}

/** Nothing of it is loaded where nobody collects traces. */
async function tracesOf(env: Record<string, string | undefined>, database: Database): Promise<Tracing | null> {
  if (!env.OTEL_EXPORTER_OTLP_ENDPOINT && !env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) return null;
  const [{ otelSettings }, { tracing }] = await Promise.all([
    import('@/lib/server/telemetry/otel-settings'),
    import('@/lib/server/telemetry/tracing'),
  ]);
  const settings = otelSettings(env);
  return settings === null ? null : tracing(settings, database);
}

/** Whether a route only takes what is sent, and shows nothing of what the time has changed. */
function isTelling({ access, method }: ApiRoute): boolean {
  return access === 'speak' && method === 'POST';
}

/** @throws AppError `unavailable` for settings that make no sense */
function newProvider(
  env: Record<string, string | undefined>,
  { now }: AccessSettings,
  kind: ContextKind,
): OidcSignIn | null {
  const found = oidcSettings(env);
  return found === null ? null : new OidcSignIn(found, now, kind === 'shared');
}
