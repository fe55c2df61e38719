import { AppError, requestIdOf, withErrors } from '@interlude/protocol/errors';
import type { OpenApiDocument } from '@interlude/protocol/open-api';
import { redactedFor } from '@interlude/protocol/redaction/redact-model';
import { isLogged, redactServerLog, serverLog } from '@interlude/protocol/server-log.mjs';
import { processMetrics } from '#process-metrics';
import { type ContextKind, contextKind, type Database, databaseOptions, openDatabase } from '@/db/client';
import { describeAction } from '@/lib/server/access/audit';
import { authenticate, authenticateProgram, sessionPrincipal } from '@/lib/server/access/authenticate';
import { LoginThrottle } from '@/lib/server/access/login-throttle';
import { OidcSignIn } from '@/lib/server/access/oidc/oidc-sign-in';
import { may, type Principal, requirePermission } from '@/lib/server/access/principal';
import type { ProviderSignInContext } from '@/lib/server/access/provider-sign-in';
import { ResponseCaches } from '@/lib/server/access/request-context';
import { allowOpaqueOrigin, preflightResponse } from '@/lib/server/access/request-origin';
import { SIGNED_OUT_PATH } from '@/lib/server/access/sign-in';
import { asResponse, OpenStreams, StreamedResponse } from '@/lib/server/access/streamed-response';
import { Readiness } from '@/lib/server/queries/health';
import type { OtelSettings } from '@/lib/server/telemetry/otel-settings';
import type { Telemetry } from '@/lib/server/telemetry/telemetry';
import type { Tracing } from '@/lib/server/telemetry/tracing';
import { type Found, findRoute, handleRoute } from './handle-route';
import { describeApi } from './open-api/get-open-api';
import { type ApiRoute, type Ids, ROUTES } from './routes';
import { closeParts, createParts, type ServerParts, startParts, startWhileStreaming } from './server-parts';
import { type ServerSettings, serverSettings } from './server-settings';

/** Retry interval for a database that was unavailable at start. */
const REOPEN_MS = 5_000;

export interface Server {
  /** @throws AppError `unavailable`, naming the setting that prevents this server from responding */
  checkSettings(): void;
  /** Responds to API requests. Never rejects. */
  handle(request: Request): Promise<Response>;
  /** Like `handle`, for the front door, which opens a StreamedResponse on the connection itself. */
  respond(request: Request): Promise<Response>;
  /** Returns true if a request carries a valid credential. */
  isAuthenticated(request: Request): Promise<boolean>;
  /** The signed-in person who requests a page; null for none. */
  visitor(headers: Headers): Promise<Principal | null>;
  /** Starts background work: expiring commands, detecting silent runners, trimming logs. */
  start(): Promise<void>;
  /**
   * Sends `bye` to every stream, refuses new ones, and closes the database after pending writes. Safe to repeat.
   *
   * @param responses settles before the database closes; the server still responds to requests until then
   */
  close(responses?: Promise<void>): Promise<void>;
  /** @throws AppError `unavailable` without a token or while the database can't be opened; the next call retries */
  parts(): Promise<ServerParts>;
  /** The API's description, for its reference page. */
  description(): Promise<OpenApiDocument>;
}

/** State that a process keeps between requests. Contains no work in progress. */
class ProcessMemory {
  readonly env: Record<string, string | undefined>;
  readonly throttle = new LoginThrottle();
  /** True once this process has found the database's schema to be current. */
  isSchemaKnown = false;
  readonly readiness: Readiness;
  readonly caches: ResponseCaches;
  #settings: ServerSettings | null = null;
  #provider: { signIn: OidcSignIn | null } | null = null;
  readonly #kind: ContextKind;

  constructor(env: Record<string, string | undefined>, kind: ContextKind) {
    this.env = env;
    this.#kind = kind;
    this.readiness = new Readiness({ isShared: kind === 'shared' });
    this.caches = new ResponseCaches(kind === 'shared');
  }

  /** @throws AppError `unavailable` for invalid settings */
  settings(): ServerSettings {
    this.#settings ??= serverSettings(this.env, this.#kind);
    return this.#settings;
  }

  /** @throws AppError `unavailable` for invalid settings */
  provider(): OidcSignIn | null {
    this.#provider ??= { signIn: newProvider(this.settings(), this.#kind) };
    return this.#provider.signIn;
  }
}

/**
 * Creates the server that the environment describes. Opens nothing yet.
 *
 * Ordering: access is decided before the database is opened or a body is read.
 * Failure: the next request, and `start`, retry a database that can't be opened.
 *
 * @param kind `perRequest`: responds to one request, and keeps that request's stream current while it is open
 */
export function createServer(
  env: Record<string, string | undefined>,
  kind: ContextKind = 'shared',
  memory = new ProcessMemory(env, kind),
): Server {
  const isLongLived = kind === 'shared';
  redactServerLog((text) => redactedFor('server-log', text));
  let opening: Promise<ServerParts> | null = null;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let closing: Promise<void> | null = null;
  /** Receives an event per response, once there is a database. */
  let telemetry: Telemetry | null = null;
  let traces: Tracing | null = null;

  const settings = () => memory.settings().access;
  const authenticator: ProviderSignInContext = {
    settings,
    throttle: memory.throttle,
    credentials: async () => (await parts()).credentials,
    context: () => parts(),
    provider: () => {
      const signIn = memory.provider();
      if (signIn !== null) return signIn;
      throw new AppError(
        'not_found',
        'No identity provider is configured. See docs/sign-in.md, or sign in with a link.',
      );
    },
    providerSignOutUrl: async () => (await memory.provider()?.endSessionUrl(SIGNED_OUT_PATH)) ?? null,
  };
  const parts = () => {
    opening ??= open().catch((error) => {
      opening = null;
      throw error;
    });
    return opening;
  };

  async function open(): Promise<ServerParts> {
    const { access, otel, retention, ...others } = memory.settings();
    const opened = await openDatabase({
      ...databaseOptions(env),
      isKnown: memory.isSchemaKnown,
      isAlone: !isLongLived,
    });
    memory.isSchemaKnown = !isLongLived;
    traces = otel === null ? null : await tracesOf(otel, opened);
    const listeners = traces?.listeners ?? [];
    const count = isLongLived ? processMetrics : () => null;
    const all: ServerParts = createParts(
      {
        ...access,
        ...others,
        database: opened,
        kind,
        caches: memory.caches,
        ...(isLongLived
          ? {}
          : {
              streams: new OpenStreams(
                () => startWhileStreaming(all),
                () => void close(),
              ),
            }),
        oidc: memory.provider(),
      },
      retention,
      { count, listeners },
    );
    telemetry = all.telemetry ?? null;
    if (isLongLived && closing === null) startParts(all);
    return all;
  }

  async function dispatch(request: Request, found: Found): Promise<Response> {
    if (found.kind === 'route') {
      const { route, ids } = found;
      if (route.access === 'open')
        return route.handler(request, { ...authenticator, parts, readiness: memory.readiness });
      const principal = await (route.access === 'speak' ? authenticateProgram : authenticate)(request, authenticator);
      if (!may(principal, route.access)) await recordForbidden(request, principal, route, ids);
      requirePermission(principal, route.access);
      const all = await parts();
      // no timers run between requests, so due work is done now
      if (!isLongLived && !isRunnerWrite(route)) await all.commands.sweepDue();
      return handleRoute(route, request, all, ids, principal);
    }
    if (found.kind === 'nothing' || !found.isOpen) await authenticate(request, authenticator);
    if (found.kind === 'nothing') {
      throw new AppError(
        'not_found',
        `There is no route ${new URL(request.url).pathname}. PROTOCOL.md lists the routes.`,
      );
    }
    const { allow } = found;
    const message = `${request.method} is not allowed here. Use ${allow}.`;
    throw new AppError('method_not_allowed', message, { headers: { allow } });
  }

  /** Counts refused actions. Reads, and attempts by runners, are not recorded. */
  async function recordForbidden(
    request: Request,
    principal: Principal,
    { action }: ApiRoute,
    ids: Ids,
  ): Promise<void> {
    if (action === null || principal.kind === 'runner') return;
    const { refusals } = await parts();
    await refusals.record(describeAction(request, principal, action, ids, null), new AppError('forbidden', action));
  }

  const dispatchSafely = withErrors(dispatch);
  const measured = withErrors(async (request: Request) => {
    const startedAt = performance.now();
    const found = findRoute(request.method, new URL(request.url).pathname);
    const response = await dispatchSafely(request, found);
    const { method } = request;
    const route = found.kind === 'route' ? found.route.pattern : null;
    const [{ status }, tookMs] = [response, performance.now() - startedAt];
    telemetry?.responded?.({ method, route, status, tookMs });
    if (isLogged('debug')) {
      const requestId = requestIdOf(request);
      serverLog('debug', `${method} ${route ?? 'nothing'} ${status}`, { requestId, method, route, status, tookMs });
    }
    // a process that may freeze does nothing after its response
    if (!isLongLived) await (response instanceof StreamedResponse ? traces?.flush() : traces?.close());
    return response;
  });
  const respondSafely = async (request: Request) =>
    preflightResponse(request) ?? allowOpaqueOrigin(request, await measured(request));

  async function start(): Promise<void> {
    await parts().catch(() => {
      retry = setTimeout(start, REOPEN_MS);
      retry.unref?.();
    });
  }

  async function end(responses?: Promise<void>): Promise<void> {
    clearTimeout(retry);
    const all = await opening?.catch(() => null);
    if (!all) return;
    closeParts(all);
    await responses;
    await traces?.close();
    await all.database.close();
  }

  function close(responses?: Promise<void>): Promise<void> {
    closing ??= end(responses);
    return closing;
  }

  return {
    checkSettings: () => void memory.settings(),
    handle: async (request) => asResponse(await respondSafely(request)),
    respond: respondSafely,
    isAuthenticated: (request) =>
      authenticate(request, authenticator).then(
        () => true,
        () => false,
      ),
    visitor: (headers) => sessionPrincipal(headers, authenticator),
    start,
    parts,
    description: () => describeApi(ROUTES),
    close,
  };
}

/** Loads tracing only if a collector is configured. */
async function tracesOf(settings: OtelSettings, database: Database): Promise<Tracing> {
  const { startTracing } = await import('@/lib/server/telemetry/tracing');
  return startTracing(settings, database);
}

/** True for routes that only accept a runner's data and show nothing time-dependent. */
function isRunnerWrite({ access, method }: ApiRoute): boolean {
  return access === 'speak' && method === 'POST';
}

function newProvider({ oidc, access }: ServerSettings, kind: ContextKind): OidcSignIn | null {
  return oidc === null ? null : new OidcSignIn(oidc, access.now, kind === 'shared');
}

/**
 * The server for a process that may freeze after any response: each request creates its own server, and everything that
 * it opens ends with the request. Only environment settings and the login throttle persist.
 *
 * Failure: a frozen or killed process holds no resource that others wait for.
 */
function perRequestServer(env: Record<string, string | undefined>): Server {
  const memory = new ProcessMemory(env, 'perRequest');
  const one = () => createServer(env, 'perRequest', memory);
  return {
    checkSettings: () => void memory.settings(),
    handle: (request) => one().handle(request),
    respond: (request) => one().respond(request),
    isAuthenticated: (request) => one().isAuthenticated(request),
    visitor: (headers) => one().visitor(headers),
    async parts() {
      const parts = await one().parts();
      await parts.commands.sweepDue();
      return parts;
    },
    description: () => one().description(),
    start: async () => {},
    close: async () => {},
  };
}

/** The server for this environment and host. */
export function serverFor(env: Record<string, string | undefined>): Server {
  return contextKind(env) === 'shared' ? createServer(env) : perRequestServer(env);
}
