import type { NewEmbed, NewEmbedRequest } from '@interlude/protocol/access';
import { AppError } from '@interlude/protocol/errors';
import { reachesLog, type Scope } from '@interlude/protocol/scope';
import { sessionsIn } from '@/db/scope-sql';
import { columnText } from '@/db/table-rows';
import type { Asked } from './asked';
import { addMadeCredential } from './credential-rows';
import type { CredentialServer } from './manage-credentials';

export interface EmbedServer extends CredentialServer {
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
  { body, principal }: Asked<never, { body: NewEmbedRequest }>,
  { database, now, credentials, embedOrigins = [] }: EmbedServer,
): Promise<NewEmbed> {
  const { role, parentOrigin, ttlSeconds, redact } = body;
  const scope = scopeOf(body, principal.scope);
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
    return addMadeCredential(transaction, principal, {
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
  await credentials.changed();
  // an embed always has an end
  return { token: secret, expiresAt: credential.expiresAt as number };
}

/** @param own what whoever asks may see: no embed shows more */
function scopeOf({ sessionId, agentId, fleet }: NewEmbedRequest, own: Scope): Scope {
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
