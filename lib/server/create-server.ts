import { databaseOptions, openDatabase } from '@/db/client';
import { pause } from '@/db/next-turn';
import { type AccessSettings, accessSettings, redactedRoles, sessionIdleMs } from '@/lib/access/access-settings';
import { actOf } from '@/lib/access/audited';
import { authenticate, authenticateProgram, signedIn } from '@/lib/access/authenticate';
import { embedOrigins } from '@/lib/access/embed-origins';
import { Guesses } from '@/lib/access/guesses';
import { oidcSettings } from '@/lib/access/oidc/oidc-settings';
import { OidcSignIn } from '@/lib/access/oidc/oidc-sign-in';
import { preflightAnswer, readableByOpaque } from '@/lib/access/opaque-origin';
import { may, type Principal, requirePermission } from '@/lib/access/principal';
import type { ProviderServer } from '@/lib/access/provider-sign-in';
import { SIGNED_OUT_PATH } from '@/lib/access/sign-in';
import { asResponse } from '@/lib/access/stream-answer';
import { webhookSetting } from '@/lib/access/webhook-settings';
import { replyOverdueMs } from '@/lib/commands/reply-settings';
import { logRetention } from '@/lib/log-store/retention-settings';
import { AppError, withErrors } from '@/lib/protocol/errors';
import { Readiness } from '@/lib/queries/health';
import { answerRoute } from './answer-route';
import { findRoute } from './find-route';
import type { ApiRoute, Ids } from './routes';
import { type ServerParts, serverParts } from './server-parts';

/** How often to try a database that was away when the server started. */
const OPEN_AGAIN_MS = 5_000;

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
   * @param farewellMs how long streams may take to say goodbye; requests are still answered meanwhile
   */
  close(farewellMs?: number): Promise<void>;
  /** @throws AppError `unavailable` without a token or while the database can't be opened; the next call tries again */
  parts(): Promise<ServerParts>;
}

/**
 * Makes the server that the environment describes. Nothing is opened yet.
 *
 * Ordering: access is decided before anything is opened or read.
 * Failure: a database that can't be opened is tried again, by the next request and by `start`.
 */
export function createServer(env: Record<string, string | undefined>): Server {
  const readiness = new Readiness();
  let known: AccessSettings | null = null;
  let oidc: { signIn: OidcSignIn | null } | null = null;
  let opening: Promise<ServerParts> | null = null;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let closing: Promise<void> | null = null;

  const settings = () => {
    known ??= accessSettings(env);
    return known;
  };
  const provider = () => {
    oidc ??= { signIn: newProvider(env, settings()) };
    return oidc.signIn;
  };
  const door: ProviderServer = {
    settings,
    guesses: new Guesses(),
    credentials: async () => (await parts()).credentials,
    context: () => parts(),
    provider: () => {
      const signIn = provider();
      if (signIn !== null) return signIn;
      throw new AppError('not_found', 'No identity provider is set here. See docs/sign-in.md, or sign in with a link.');
    },
    endAtProvider: async () => (await provider()?.endSessionUrl(SIGNED_OUT_PATH)) ?? null,
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
    // settings by which nobody could sign in are told at the start, not to whoever tries
    provider();
    const seconds = Number(env.INTERLUDE_STREAM_MAX_SECONDS);
    const streamMaxMs = seconds > 0 ? seconds * 1000 : null;
    const { webhook, problem: webhookProblem } = webhookSetting(env);
    const opened = await openDatabase(databaseOptions(env));
    const all = serverParts(
      {
        ...access,
        database: opened,
        streamMaxMs,
        replyOverdueMs: replyOverdueMs(env),
        webhook,
        webhookProblem,
        sessionIdleMs: sessionIdleMs(env),
        embedOrigins: embedOrigins(env),
        redactedRoles: redactedRoles(env),
      },
      logRetention(env),
    );
    if (closing === null) {
      all.commands.keep();
      all.logs.keep();
      all.webhooks.keep();
      all.refusals.keep();
    }
    return all;
  }

  async function answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    const found = findRoute(request.method, pathname);
    if (found.kind === 'route') {
      const { route, ids } = found;
      if (route.access === 'open') return route.handler(request, { ...door, parts, readiness });
      const principal = await (route.access === 'speak' ? authenticateProgram : authenticate)(request, door);
      if (!may(principal, route.access)) await noteForbidden(request, principal, route, ids);
      requirePermission(principal, route.access);
      return answerRoute(route, request, await parts(), ids, principal);
    }
    if (found.kind === 'nothing' || !found.isOpen) await authenticate(request, door);
    if (found.kind === 'nothing') {
      throw new AppError('not_found', `There is nothing at ${pathname}. PROTOCOL.md lists the routes.`);
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

  const answered = withErrors(answer);
  const safely = async (request: Request) =>
    preflightAnswer(request) ?? readableByOpaque(request, await answered(request));

  async function start(): Promise<void> {
    await parts().catch(() => {
      retry = setTimeout(start, OPEN_AGAIN_MS);
      retry.unref?.();
    });
  }

  async function end(farewellMs: number): Promise<void> {
    clearTimeout(retry);
    const all = await opening?.catch(() => null);
    if (!all) return;
    all.fanOut.close('shutdown');
    all.commands.close();
    all.logs.close();
    all.webhooks.close();
    all.credentials.close();
    all.refusals.close();
    if (farewellMs > 0) await pause(farewellMs);
    await all.database.close();
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
    close(farewellMs = 0) {
      closing ??= end(farewellMs);
      return closing;
    },
  };
}

/** @throws AppError `unavailable` for settings that make no sense */
function newProvider(env: Record<string, string | undefined>, { token, now }: AccessSettings): OidcSignIn | null {
  const found = oidcSettings(env);
  return found === null ? null : new OidcSignIn(found, token, now);
}
