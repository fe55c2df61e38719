import { AppError } from '@interlude/protocol/errors';
import type { Role } from '@interlude/protocol/scope';
import type { Row } from '@libsql/client';
import { credentials } from '@/db/schema';
import { RowWriter, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { LOCAL_SESSION_MS, MEMBER_SESSION_MS } from './access-settings';
import { LOCAL_ID, type Principal } from './principal';
import { makeSecret, textDigest } from './secret';

/**
 * Writes credentials. Every change bumps `access.version` in the same transaction, so caching processes reload
 * (credential-cache.ts).
 *
 * Lifetime: everything a token created expires no later than the token and is revoked with it, recursively. An embed, a
 * code and the sign-in from that code end with the sign-in that created them. A token created by a signed-in person
 * outlives the sign-in, because programs keep running after people sign out; it ends when the person is blocked or
 * loses the admin role (manage-members.ts).
 */

export type Credential = Omit<typeof credentials.$inferSelect, 'hash'>;

const ROW = shapeOf(credentials);
const CREDENTIALS = new RowWriter(credentials, { keeps: [] });

type Assigned = 'id' | 'createdAt' | 'lastUsedAt' | 'revokedAt';

export type NewCredential = Pick<Credential, 'kind' | 'name' | 'role' | 'scope' | 'expiresAt'> &
  Partial<Omit<Credential, Assigned>> & { now: number };

/** Retention of expired embeds and codes. They live for minutes and accumulate with every page view. */
const RETENTION_MS = 30 * 24 * 3_600_000;
const MAX_REMOVED = 100;

/** @returns the secret, which is not stored, and the stored credential */
export async function addCredential(
  transaction: WriteTransaction,
  { now, ...fields }: NewCredential,
): Promise<{ secret: string; credential: Credential }> {
  const secret = makeSecret(fields.kind);
  const credential: Credential = {
    idleMs: null,
    parentId: null,
    parentOrigin: null,
    redacts: false,
    memberId: null,
    providerSessionId: null,
    refreshToken: null,
    roleCheckedAt: null,
    roleDueAt: null,
    ...fields,
    id: `${fields.kind}-${crypto.randomUUID()}`,
    createdAt: now,
    lastUsedAt: now,
    revokedAt: null,
  };
  await transaction.execute({
    sql: `DELETE FROM credentials WHERE id IN (
      SELECT id FROM credentials WHERE expires_at < ? AND kind IN ('embed', 'code') LIMIT ${MAX_REMOVED})`,
    args: [now - RETENTION_MS],
  });
  await transaction.execute({
    sql: 'UPDATE credentials SET refresh_token = NULL WHERE expires_at <= ? AND refresh_token IS NOT NULL',
    args: [now],
  });
  await transaction.execute(CREDENTIALS.one({ ...credential, hash: textDigest(secret) }));
  await bumpAccessVersion(transaction);
  return { secret, credential };
}

/**
 * Adds a credential created by another one; it expires no later than its parent allows.
 *
 * @throws AppError `unauthenticated` if the parent was revoked during the request: the new credential would outlive it
 */
export async function addDerivedCredential(
  transaction: WriteTransaction,
  parent: Pick<Principal, 'credentialId' | 'credentialKind' | 'expiresAt'>,
  derived: Omit<NewCredential, 'parentId'>,
): Promise<{ secret: string; credential: Credential }> {
  const { credentialId: parentId, credentialKind } = parent;
  transaction.touch('access');
  if (credentialKind !== 'owner') {
    const { rows } = await transaction.execute({
      sql: 'SELECT 1 FROM credentials WHERE id = ? AND revoked_at IS NULL',
      args: [parentId],
    });
    if (rows.length === 0) throw new AppError('unauthenticated', 'This credential was just revoked. Use another one.');
  }
  const outlivesParent = credentialKind === 'session' && derived.kind === 'token';
  const most = outlivesParent ? null : parent.expiresAt;
  const expiresAt = most === null ? derived.expiresAt : Math.min(derived.expiresAt ?? most, most);
  return addCredential(transaction, { ...derived, expiresAt, parentId });
}

/**
 * Revokes credentials and everything that ends with them (see Lifetime).
 *
 * @param where a condition on `credentials`, with its arguments
 * @param options.keptId credential to keep along with everything it created, even if a revoked credential created it
 * @returns ids that matched and were live
 */
export async function revokeCredentials(
  transaction: WriteTransaction,
  where: { sql: string; args: (string | number)[] },
  now: number,
  { keptId = null }: { keptId?: string | null } = {},
): Promise<string[]> {
  const chosen = await transaction.execute({
    sql: `SELECT id, revoked_at IS NULL AS is_live FROM credentials WHERE ${where.sql}`,
    args: where.args,
  });
  const ids = JSON.stringify(chosen.rows.map(({ id }) => String(id)));
  // also descends from revoked credentials, because an earlier version did not revoke the credentials that they had
  // created
  const { rows } = await transaction.execute({
    sql: `WITH RECURSIVE over (id, kind) AS (
        SELECT id, kind FROM credentials WHERE id IN (SELECT value FROM json_each(?))
        UNION SELECT made.id, made.kind FROM credentials AS made JOIN over ON made.parent_id = over.id
          WHERE made.id IS NOT ? AND (made.kind <> 'token' OR over.kind = 'token'))
      UPDATE credentials SET revoked_at = ?, refresh_token = NULL
        WHERE revoked_at IS NULL AND id IN (SELECT id FROM over) RETURNING id`,
    args: [ids, keptId, now],
  });
  if (rows.length > 0) await bumpAccessVersion(transaction);
  return chosen.rows.filter(({ is_live }) => Number(is_live) === 1).map(({ id }) => String(id));
}

export async function bumpAccessVersion(transaction: WriteTransaction): Promise<void> {
  await transaction.execute('UPDATE access SET version = version + 1');
}

export const CREDENTIAL_COLUMNS = ROW.columns();

/** Reads the credential with this id; null if there is none. */
export async function readCredential(
  reader: Pick<WriteTransaction, 'execute'>,
  id: string | null,
): Promise<(Credential & { hash: string }) | null> {
  const sql = `SELECT ${CREDENTIAL_COLUMNS} FROM credentials WHERE id = ?`;
  const { rows } = await reader.execute({ sql, args: [id] });
  return rows[0] === undefined ? null : credentialFromRow(rows[0]);
}

export function credentialFromRow(row: Row): Credential & { hash: string } {
  const credential = ROW.read(row);
  return { ...credential, expiresAt: credential.expiresAt ?? defaultExpiry(credential) };
}

/** Expiry of a sign-in without `expiresAt`. Earlier versions still create such sign-ins during a rolling upgrade. */
function defaultExpiry({ kind, memberId, createdAt }: Credential): number | null {
  if (kind !== 'session') return null;
  return createdAt + (memberId === null ? LOCAL_SESSION_MS : MEMBER_SESSION_MS);
}

export function isLive({ revokedAt, expiresAt, idleMs, lastUsedAt }: Credential, now: number): boolean {
  if (revokedAt !== null) return false;
  if (expiresAt !== null && expiresAt <= now) return false;
  return idleMs === null || lastUsedAt + idleMs > now;
}

/** @param redactedRoles roles that always get redacted responses, except embeds, which carry their own flag */
export function principalOf(credential: Credential, redactedRoles: readonly Role[] = []): Principal {
  const { id, name, role, scope, memberId, expiresAt, parentOrigin, kind, redacts } = credential;
  return {
    // all sign-ins with this machine's link count as one person
    id: memberId ?? (kind === 'session' ? LOCAL_ID : id),
    name,
    kind: kind === 'embed' ? 'embed' : role === 'runner' ? 'runner' : 'human',
    role,
    scope,
    credentialId: id,
    credentialKind: kind,
    memberId,
    expiresAt,
    parentOrigin,
    redacts: redacts || (kind !== 'embed' && redactedRoles.includes(role)),
  };
}
