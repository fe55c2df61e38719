import type { NewEmbed, NewEmbedRequest } from '@interlude/protocol/access';
import { AppError } from '@interlude/protocol/errors';
import { reachesLog, type Scope } from '@interlude/protocol/scope';
import { sessionsIn } from '@/db/scope-sql';
import { columnText } from '@/db/table-rows';
import { addDerivedCredential } from './credential-rows';
import type { CredentialContext } from './manage-credentials';
import { notFound } from './principal';
import type { RequestContext } from './request-context';

interface EmbedServer extends CredentialContext {
  /** Origins that may frame embeds, exactly as browsers send them. */
  embedOrigins?: readonly string[];
}

/**
 * `POST /embed-tokens`: creates a token for a frame that shows one session, one log or the session list. Read-only
 * unless requested otherwise, valid for 15 minutes at most, and ends with its parent credential. Redacted unless
 * requested otherwise, because the embedding page has a wider audience than the dashboard.
 *
 * @throws AppError `invalid_argument`; `not_found` for an unknown session or agent
 */
export async function postEmbedToken(
  { body, principal }: RequestContext<never, { body: NewEmbedRequest }>,
  { database, now, credentials, embedOrigins = [] }: EmbedServer,
): Promise<NewEmbed> {
  const { role, parentOrigin, ttlSeconds, redact } = body;
  const scope = embedScope(body, principal.scope);
  if (scope.kind !== 'session' && role === 'operator') {
    throw new AppError('invalid_argument', 'Only an embed of one session may act. Omit "role" for other embeds.');
  }
  if (!embedOrigins.includes(parentOrigin)) {
    throw new AppError(
      'invalid_argument',
      `${JSON.stringify(parentOrigin)} may not embed Interlude. Add exactly this origin to INTERLUDE_EMBED_ORIGINS.`,
      { details: { parentOrigin } },
    );
  }
  const { secret, credential } = await database.writes.run(async (transaction) => {
    if (scope.kind === 'session') {
      const { rows } = await transaction.execute({
        sql: `SELECT 1 FROM sessions WHERE id = ? AND ${sessionsIn(principal.scope, 'id')}`,
        args: [scope.sessionId],
      });
      if (rows.length === 0) throw notFound('session', String(body.sessionId), '/sessions');
    }
    return addDerivedCredential(transaction, principal, {
      kind: 'embed',
      name: `Embed in ${parentOrigin}`,
      role,
      scope,
      now: now(),
      expiresAt: now() + ttlSeconds * 1000,
      parentOrigin,
      redacts: redact,
    });
  });
  await credentials.invalidate();
  // an embed always has an expiry
  return { token: secret, expiresAt: credential.expiresAt as number };
}

/** @param own scope of the creator, which limits the scope of the embed */
function embedScope({ sessionId, agentId, fleet }: NewEmbedRequest, own: Scope): Scope {
  const targets = [sessionId, agentId, fleet].filter((one) => one !== undefined);
  if (targets.length !== 1) {
    throw new AppError(
      'invalid_argument',
      'An embed shows a session, an agent’s log or the fleet. Send one of "sessionId", "agentId" and "fleet": true.',
    );
  }
  if (sessionId !== undefined) return { kind: 'session', sessionId: columnText(sessionId) };
  if (agentId === undefined) return { kind: 'fleet', within: own };
  if (reachesLog(own, columnText(agentId))) return { kind: 'log', agentId: columnText(agentId) };
  throw notFound('agent', agentId, '/agents');
}

/** Header that the proxy sets for embed pages. */
export const EMBED_HEADER = 'x-interlude-embed';

/** Embed pages. Served without a sign-in, because they contain no data. */
const EMBED_PAGE = /^\/embed\/(?:sessions\/[^/]+|agents\/[^/]+\/logs|fleet)$/;

export function isEmbedPage(pathname: string): boolean {
  return EMBED_PAGE.test(pathname);
}

/**
 * Origins whose pages may frame an embed: scheme, host and port, without wildcards.
 *
 * @throws AppError `unavailable` for an invalid origin
 */
export function embedOrigins(env: Record<string, string | undefined>): readonly string[] {
  const named = (env.INTERLUDE_EMBED_ORIGINS ?? '').split(',').map((one) => one.trim());
  return [...new Set(named.filter((one) => one !== '').map(parseOrigin))];
}

function parseOrigin(named: string): string {
  // URL accepts a wildcard as a host name; browsers treat it as a pattern
  if (URL.canParse(named) && !named.includes('*')) {
    const { protocol, origin, href } = new URL(named);
    // reject a path, query or user name instead of dropping it silently
    if (/^https?:$/.test(protocol) && href === `${origin}/`) return origin;
  }
  throw new AppError(
    'unavailable',
    `INTERLUDE_EMBED_ORIGINS contains ${JSON.stringify(named)}, which is not an origin. Use origins such as https://console.example.com:8443, separated by commas, and restart.`,
  );
}
