import type {
  CredentialList,
  CredentialSummary,
  Me,
  NewToken,
  NewTokenRequest,
  SignInCode,
} from '@interlude/protocol/access';
import { AppError } from '@interlude/protocol/errors';
import { EVERYTHING, type Scope } from '@interlude/protocol/scope';
import type { Database } from '@/db/client';
import { columnText } from '@/db/table-rows';
import type { Asked } from './asked';
import type { CredentialBook } from './credential-book';
import {
  addMadeCredential,
  CREDENTIAL_COLUMNS,
  type Credential,
  credentialFromRow,
  revokeCredentials,
} from './credential-rows';
import { LOCAL_ADMIN } from './person-of';
import { isLocal, type Principal } from './principal';
import { CODE_LIFETIME_MS } from './sign-in';

/** What the handlers of this file get. */
export interface CredentialServer {
  database: Database;
  now: () => number;
  credentials: CredentialBook;
}

/** Most of each kind that are listed, the newest. */
const MOST_LISTED = 200;
const KINDS = ['token', 'session', 'embed'] as const;

/** `GET /me`: who the sender is, and what it may. */
export async function getMe({ principal }: Asked): Promise<Me> {
  return meOf(principal);
}

export function meOf(principal: Principal): Me {
  const { id, name, kind, role, scope, credentialId, expiresAt, parentOrigin, redacts } = principal;
  return { id, name, kind, role, scope, credentialId, expiresAt, parentOrigin, redacts };
}

/** `GET /credentials`: tokens, sign-ins and embeds that are live or were revoked, the newest of each kind first. */
export async function getCredentials(_: Asked, { database, now }: CredentialServer): Promise<CredentialList> {
  return readCredentials(database, now());
}

/** Those that let somebody in come first: they must not be hidden by many that are over. */
export async function readCredentials({ reader }: Pick<Database, 'reader'>, now: number): Promise<CredentialList> {
  const results = await reader.batch(
    KINDS.map((kind) => ({
      sql: `SELECT ${CREDENTIAL_COLUMNS} FROM credentials WHERE kind = ? AND (expires_at IS NULL OR expires_at > ?)
        ORDER BY revoked_at IS NOT NULL OR ifnull(last_used_at + idle_ms <= ?, FALSE), created_at DESC LIMIT ?`,
      args: [kind, now, now, MOST_LISTED + 1],
    })),
    'read',
  );
  return {
    credentials: results.flatMap(({ rows }) =>
      rows.slice(0, MOST_LISTED).map((row) => summaryOf(credentialFromRow(row))),
    ),
    hasMore: results.some(({ rows }) => rows.length > MOST_LISTED),
  };
}

/** `POST /tokens`: a token for a program. Its secret is in this answer, and nowhere else. */
export async function postToken(
  { body, principal }: Asked<never, { body: NewTokenRequest }>,
  { database, now, credentials }: CredentialServer,
): Promise<NewToken> {
  const { role, agent, agentPrefix, expiresAt = null } = body;
  const scope = scopeOf(body);
  const whose = agentPrefix === undefined ? '' : `of ${agentPrefix}…`;
  const name = body.name ?? `${role} ${agent === undefined ? whose : `of ${agent}`}`.trim();
  const { secret, credential } = await database.writes.run((transaction) =>
    addMadeCredential(transaction, principal, { kind: 'token', name, role, scope, now: now(), expiresAt }),
  );
  await credentials.changed();
  return { token: secret, credential: summaryOf(credential) };
}

function scopeOf({ role, agent, agentPrefix, producerPrefix, anyAgent }: NewTokenRequest): Scope {
  const isNarrow = agent !== undefined || agentPrefix !== undefined;
  if (anyAgent && (role !== 'runner' || isNarrow)) {
    throw new AppError('invalid_argument', '"anyAgent" is for a runner, and stands without "agent" and "agentPrefix".');
  }
  if (role === 'runner' && !isNarrow && !anyAgent) {
    throw new AppError(
      'invalid_argument',
      'A runner’s token is for an agent: give "agent" with its id, or "agentPrefix" with how the ids of its agents begin.',
    );
  }
  if (isNarrow && role === 'admin') {
    throw new AppError('invalid_argument', `A token with the role ${role} reaches everything. Leave out the agent.`);
  }
  if (!isNarrow) return EVERYTHING;
  return {
    kind: 'agents',
    ids: agent === undefined ? [] : [columnText(agent)],
    prefixes: agentPrefix === undefined ? [] : [columnText(agentPrefix)],
    ...(producerPrefix === undefined ? {} : { producerPrefix: columnText(producerPrefix) }),
  };
}

/** `DELETE /credentials/:credentialId`: ends it and what was made with it, everywhere within two seconds. */
export async function deleteCredential(
  { ids: { credentialId } }: Asked<'credentialId'>,
  { database, now, credentials }: CredentialServer,
): Promise<{ credential: CredentialSummary }> {
  const credential = await database.writes.run(async (transaction) => {
    transaction.touch('access');
    await revokeCredentials(transaction, { sql: 'id = ?', args: [credentialId] }, now());
    const { rows } = await transaction.execute({
      sql: `SELECT ${CREDENTIAL_COLUMNS} FROM credentials WHERE id = ?`,
      args: [credentialId],
    });
    if (rows[0] === undefined) {
      throw new AppError(
        'not_found',
        `There is no credential ${JSON.stringify(credentialId)}. GET /api/v1/credentials lists them.`,
      );
    }
    return summaryOf(credentialFromRow(rows[0]));
  });
  await credentials.changed();
  return { credential };
}

/** `POST /sign-in-codes`: a code for one sign-in as an admin, within five minutes. */
export async function postSignInCode({ principal }: Asked, { database, now }: CredentialServer): Promise<SignInCode> {
  if (!isLocal(principal)) {
    throw new AppError(
      'forbidden',
      'Links to sign in are made on the machine itself, with "interlude sign-in": what they let in belongs to no member, and no admin could end it with you.',
    );
  }
  const expiresAt = now() + CODE_LIFETIME_MS;
  const { secret, credential } = await database.writes.run((transaction) =>
    addMadeCredential(transaction, principal, {
      kind: 'code',
      name: LOCAL_ADMIN,
      role: 'admin',
      scope: EVERYTHING,
      now: now(),
      expiresAt,
    }),
  );
  return { code: secret, path: `/sign-in?token=${secret}`, expiresAt: credential.expiresAt ?? expiresAt };
}

export function summaryOf({ idleMs, lastUsedAt, providerSessionId: _, ...credential }: Credential): CredentialSummary {
  const { id, kind, name, role, scope, parentOrigin, redacts, memberId, parentId } = credential;
  const { createdAt, expiresAt, revokedAt } = credential;
  const idleUntil = idleMs === null ? null : lastUsedAt + idleMs;
  const about = { id, kind, name, role, scope, parentOrigin, redacts, memberId, parentId };
  return { ...about, createdAt, lastUsedAt, expiresAt, idleUntil, revokedAt };
}
