import type { NewEmbed, NewEmbedRequest } from '@interlude/protocol/access';
import { AppError } from '@interlude/protocol/errors';
import { reachesLog, type Scope } from '@interlude/protocol/scope';
import { columnText } from '@/db/column-text';
import { sessionsIn } from '@/db/scope-sql';
import { addDerivedCredential } from './credential-rows';
import type { CredentialContext } from './manage-credentials';
import type { RequestContext } from './request-context';

export interface EmbedServer extends CredentialContext {
  /** The origins of consoles, exactly as browsers write them. */
  embedOrigins?: readonly string[];
}

/**
 * `POST /embed-tokens`: what a console's backend asks for, so that a frame in it can show one session, one log, or the
 * list of sessions. It reads, unless it is asked to act; it lasts for a quarter of an hour at most, and ends with the
 * credential that asked for it. Secrets are taken out of what it shows, unless it is asked not to: a console shows it to
 * more people than come here.
 *
 * @throws AppError `invalid_argument`; `not_found` for a session that is not there
 */
export async function postEmbedToken(
  { body, principal }: RequestContext<never, { body: NewEmbedRequest }>,
  { database, now, credentials, embedOrigins = [] }: EmbedServer,
): Promise<NewEmbed> {
  const { role, parentOrigin, ttlSeconds, redact } = body;
  const scope = embedScope(body, principal.scope);
  if (scope.kind !== 'session' && role === 'operator') {
    throw new AppError('invalid_argument', 'Only an embed of one session may act. Leave out "role" for the others.');
  }
  if (!embedOrigins.includes(parentOrigin)) {
    throw new AppError(
      'invalid_argument',
      `Nothing may be embedded in ${JSON.stringify(parentOrigin)}. An admin allows it by naming that origin, exactly so, in INTERLUDE_EMBED_ORIGINS.`,
      { details: { parentOrigin } },
    );
  }
  const { secret, credential } = await database.writes.run(async (transaction) => {
    if (scope.kind === 'session') {
      const { rows } = await transaction.execute({
        sql: `SELECT 1 FROM sessions WHERE id = ? AND ${sessionsIn(principal.scope, 'id')}`,
        args: [scope.sessionId],
      });
      if (rows.length === 0) {
        const message = `There is no session ${JSON.stringify(body.sessionId)}. GET /api/v1/sessions lists what there is.`;
        throw new AppError('not_found', message);
      }
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
  // an embed always has an end
  return { token: secret, expiresAt: credential.expiresAt as number };
}

/** @param own what whoever asks may see: no embed shows more */
function embedScope({ sessionId, agentId, fleet }: NewEmbedRequest, own: Scope): Scope {
  const given = [sessionId, agentId, fleet].filter((one) => one !== undefined);
  if (given.length !== 1) {
    throw new AppError(
      'invalid_argument',
      'An embed shows one thing: give "sessionId", or "agentId" for that agent’s log, or "fleet": true.',
    );
  }
  if (sessionId !== undefined) return { kind: 'session', sessionId: columnText(sessionId) };
  if (agentId === undefined) return { kind: 'fleet', within: own };
  if (reachesLog(own, columnText(agentId))) return { kind: 'log', agentId: columnText(agentId) };
  throw new AppError(
    'not_found',
    `There is no agent ${JSON.stringify(agentId)}. GET /api/v1/agents lists what there is.`,
  );
}

/** What the proxy tells the page of it. */
export const EMBED_HEADER = 'x-interlude-embed';

/** The pages that a console shows in a frame. They come to anybody, for there is nothing in them. */
const EMBED_PAGE = /^\/embed\/(?:sessions\/[^/]+|agents\/[^/]+\/logs|fleet)$/;

export function isEmbedPage(pathname: string): boolean {
  return EMBED_PAGE.test(pathname);
}

/**
 * The origins whose pages may show an embed, exactly as browsers write them: scheme, host and port, no wildcard.
 *
 * @throws AppError `unavailable` when one is no such origin: nothing is embedded by guess
 */
export function embedOrigins(env: Record<string, string | undefined>): readonly string[] {
  const named = (env.INTERLUDE_EMBED_ORIGINS ?? '').split(',').map((one) => one.trim());
  return [...new Set(named.filter((one) => one !== '').map(parseOrigin))];
}

function parseOrigin(named: string): string {
  // a name with a star is one to URL, and a pattern to browsers
  if (URL.canParse(named) && !named.includes('*')) {
    const { protocol, origin, href } = new URL(named);
    // a path, a query or a name would be left out in silence
    if (/^https?:$/.test(protocol) && href === `${origin}/`) return origin;
  }
  throw new AppError(
    'unavailable',
    `INTERLUDE_EMBED_ORIGINS names ${JSON.stringify(named)}, which is no origin. Write each as in "https://console.example.com:8443", with commas between, and start again.`,
  );
}
