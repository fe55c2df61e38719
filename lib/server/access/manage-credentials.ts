import type {
  CredentialList,
  CredentialSummary,
  Me,
  NewToken,
  NewTokenRequest,
  OwnSignIns,
  SignInCode,
} from '@interlude/protocol/access';
import { AppError } from '@interlude/protocol/errors';
import { EVERYTHING, type Scope } from '@interlude/protocol/scope';
import type { Database } from '@/db/client';
import { columnText } from '@/db/table-rows';
import type { CredentialCache } from './credential-cache';
import {
  addDerivedCredential,
  CREDENTIAL_COLUMNS,
  type Credential,
  credentialFromRow,
  isLive,
  readCredential,
  revokeCredentials,
} from './credential-rows';
import { isLocal, LOCAL_ADMIN, notFound, type Principal } from './principal';
import type { RequestContext } from './request-context';
import { CODE_LIFETIME_MS } from './sign-in';

export interface CredentialContext {
  database: Database;
  now: () => number;
  credentials: CredentialCache;
}

/** Newest credentials listed per kind. */
const MAX_LISTED = 200;
const KINDS = ['token', 'session', 'embed'] as const;

/** `GET /me` */
export async function getMe({ principal }: RequestContext): Promise<Me> {
  return describePrincipal(principal);
}

export function describePrincipal(principal: Principal): Me {
  const { id, name, kind, role, scope, credentialId, expiresAt, parentOrigin, redacts } = principal;
  return { id, name, kind, role, scope, credentialId, expiresAt, parentOrigin, redacts };
}

/** `GET /credentials`: unexpired tokens, sign-ins and embeds, newest of each kind first. */
export async function getCredentials(_: RequestContext, { database, now }: CredentialContext): Promise<CredentialList> {
  return readCredentials(database, now());
}

/** Sorts live credentials first, so revoked ones can't push them off the page. */
export async function readCredentials({ reader }: Pick<Database, 'reader'>, now: number): Promise<CredentialList> {
  const results = await reader.batch(
    KINDS.map((kind) => ({
      sql: `SELECT ${CREDENTIAL_COLUMNS} FROM credentials WHERE kind = ? AND (expires_at IS NULL OR expires_at > ?)
        ORDER BY revoked_at IS NOT NULL OR ifnull(last_used_at + idle_ms <= ?, FALSE), created_at DESC LIMIT ?`,
      args: [kind, now, now, MAX_LISTED + 1],
    })),
    'read',
  );
  return {
    credentials: results.flatMap(({ rows }) =>
      rows.slice(0, MAX_LISTED).map((row) => summaryOf(credentialFromRow(row))),
    ),
    hasMore: results.some(({ rows }) => rows.length > MAX_LISTED),
  };
}

/** `POST /tokens`: creates a token for a program. Only this response contains its secret. */
export async function postToken(
  { body, principal }: RequestContext<never, { body: NewTokenRequest }>,
  { database, now, credentials }: CredentialContext,
): Promise<NewToken> {
  const { role, agent, agentPrefix, expiresAt = null } = body;
  const scope = tokenScope(body);
  const prefixName = agentPrefix === undefined ? '' : `of ${agentPrefix}…`;
  const name = body.name ?? `${role} ${agent === undefined ? prefixName : `of ${agent}`}`.trim();
  const { secret, credential } = await database.writes.run((transaction) =>
    addDerivedCredential(transaction, principal, { kind: 'token', name, role, scope, now: now(), expiresAt }),
  );
  await credentials.invalidate();
  return { token: secret, credential: summaryOf(credential) };
}

function tokenScope({ role, agent, agentPrefix, producerPrefix, anyAgent }: NewTokenRequest): Scope {
  const isNarrow = agent !== undefined || agentPrefix !== undefined;
  if (anyAgent && (role !== 'runner' || isNarrow)) {
    throw new AppError('invalid_argument', '"anyAgent" is for runners only, and excludes "agent" and "agentPrefix".');
  }
  if (role === 'runner' && !isNarrow && !anyAgent) {
    throw new AppError(
      'invalid_argument',
      'A runner’s token needs "agent" with an id, or "agentPrefix" with the prefix of its agents’ ids.',
    );
  }
  if (isNarrow && role === 'admin') {
    throw new AppError('invalid_argument', `A token with the role ${role} reaches everything. Omit the agent.`);
  }
  if (!isNarrow) return EVERYTHING;
  return {
    kind: 'agents',
    ids: agent === undefined ? [] : [columnText(agent)],
    prefixes: agentPrefix === undefined ? [] : [columnText(agentPrefix)],
    ...(producerPrefix === undefined ? {} : { producerPrefix: columnText(producerPrefix) }),
  };
}

/**
 * `DELETE /credentials/:credentialId`: revokes a credential and everything it created, on all instances within two
 * seconds.
 */
export async function deleteCredential(
  { ids: { credentialId } }: RequestContext<'credentialId'>,
  { database, now, credentials }: CredentialContext,
): Promise<{ credential: CredentialSummary }> {
  const credential = await database.writes.run(async (transaction) => {
    transaction.touch('access');
    await revokeCredentials(transaction, { sql: 'id = ?', args: [credentialId] }, now());
    const found = await readCredential(transaction, credentialId);
    if (found === null) throw notFound('credential', credentialId, '/credentials');
    return summaryOf(found);
  });
  await credentials.invalidate();
  return { credential };
}

/** `POST /sign-in-codes`: creates a single-use admin sign-in code, valid for five minutes. */
export async function postSignInCode(
  { principal }: RequestContext,
  { database, now }: CredentialContext,
): Promise<SignInCode> {
  if (!isLocal(principal)) {
    throw new AppError(
      'forbidden',
      'Sign-in links can only be created on the server’s machine, with "interlude sign-in": they belong to no member, so blocking you would not revoke them.',
    );
  }
  const expiresAt = now() + CODE_LIFETIME_MS;
  const { secret, credential } = await database.writes.run((transaction) =>
    addDerivedCredential(transaction, principal, {
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

function summaryOf({ idleMs, lastUsedAt, providerSessionId: _, ...credential }: Credential): CredentialSummary {
  const { id, kind, name, role, scope, parentOrigin, redacts, memberId, parentId } = credential;
  const { createdAt, expiresAt, revokedAt } = credential;
  const idleUntil = idleMs === null ? null : lastUsedAt + idleMs;
  const about = { id, kind, name, role, scope, parentOrigin, redacts, memberId, parentId };
  return { ...about, createdAt, lastUsedAt, expiresAt, idleUntil, revokedAt };
}

const MAX_SIGN_INS = 200;

/** `GET /me/sign-ins`: the sender's sign-ins, last used first. */
export async function getOwnSignIns(
  { principal }: RequestContext,
  { database, now }: Pick<CredentialContext, 'database' | 'now'>,
): Promise<OwnSignIns> {
  return readOwnSignIns(database, principal, now());
}

export async function readOwnSignIns(
  { reader }: Pick<Database, 'reader'>,
  principal: Principal,
  now: number,
): Promise<OwnSignIns> {
  const { sql, args } = samePerson(principal);
  const { rows } = await reader.execute({
    sql: `SELECT ${CREDENTIAL_COLUMNS} FROM credentials WHERE revoked_at IS NULL AND ${sql}
      ORDER BY last_used_at DESC LIMIT ${MAX_SIGN_INS}`,
    args,
  });
  return {
    signIns: rows
      .map(credentialFromRow)
      .filter((one) => isLive(one, now))
      .map(summaryOf),
  };
}

/**
 * `DELETE /me/sign-ins`: revokes all but the current one.
 *
 * @throws AppError `forbidden`; `conflict` if there is no other, so the audit gets no entry for an action without
 * effect
 */
export async function deleteOwnSignIns(
  { principal }: RequestContext,
  { database, now, credentials }: CredentialContext,
): Promise<OwnSignIns> {
  if (principal.credentialKind !== 'session') {
    throw new AppError('forbidden', 'Only a signed-in browser can end its other sign-ins. Sign in first.');
  }
  const { sql, args } = samePerson(principal);
  await database.writes.run(async (transaction) => {
    transaction.touch('access');
    const where = { sql: `${sql} AND id <> ?`, args: [...args, principal.credentialId] };
    const ended = await revokeCredentials(transaction, where, now(), { keptId: principal.credentialId });
    if (ended.length === 0) throw new AppError('conflict', 'You are not signed in anywhere else.');
  });
  await credentials.invalidate();
  return readOwnSignIns(database, principal, now());
}

/**
 * A condition on `credentials` for the sign-ins of the same person. Local sign-ins have no member and are matched by
 * name. Matches nothing for other kinds of credentials.
 */
function samePerson({ memberId, name, credentialId }: Principal): { sql: string; args: string[] } {
  return memberId === null
    ? {
        sql: `kind = 'session' AND member_id IS NULL AND name = ?
          AND EXISTS (SELECT 1 FROM credentials WHERE id = ? AND kind = 'session')`,
        args: [name, credentialId],
      }
    : { sql: `kind = 'session' AND member_id = ?`, args: [memberId] };
}
