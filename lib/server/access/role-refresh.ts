import { forLog } from '@interlude/protocol/errors';
import { EVERYTHING, type Role } from '@interlude/protocol/scope';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import type { Database } from '@/db/client';
import { serverKey } from '@/db/server-keys';
import type { WriteTransaction } from '@/db/writes';
import { recordAction } from './audit';
import { bumpAccessVersion, type Credential, revokeCredentials } from './credential-rows';
import { revokeMembers, setMemberRole } from './manage-members';
import type { OidcSignIn, RefreshedPerson, SignedInPerson } from './oidc/oidc-sign-in';
import { open, seal } from './oidc/pending-sign-ins';
import type { Principal } from './principal';

/** Age at which a role is refreshed while its sign-in is used. */
const ROLE_MS = 3_600_000;
/** Delay after a first failure; it doubles with each further one. */
const RETRY_MS = 60_000;
const MAX_RETRY_MS = 30 * 60_000;

interface RoleServer {
  database: Database;
  now: () => number;
  /** Null without a configured provider. */
  oidc?: OidcSignIn | null;
}

/** Columns that schedule the next role refresh of a confirmed sign-in. Without a refresh token nothing is scheduled. */
export async function roleColumns(
  database: Database,
  oidc: OidcSignIn,
  { subject, refreshToken }: Pick<SignedInPerson, 'subject' | 'refreshToken'>,
  now: number,
): Promise<Pick<Credential, 'refreshToken' | 'roleCheckedAt' | 'roleDueAt'>> {
  if (refreshToken === null) return { refreshToken: null, roleCheckedAt: now, roleDueAt: null };
  const sealed = await sealGrant(database, oidc, { subject, refreshToken });
  return { refreshToken: sealed, roleCheckedAt: now, roleDueAt: now + ROLE_MS };
}

async function sealGrant(
  database: Database,
  { grantClaims }: OidcSignIn,
  { subject: sub, refreshToken }: { subject: string; refreshToken: string },
): Promise<string> {
  return seal({ ...grantClaims, sub, refreshToken }, await serverKey(database, 'refresh-token'));
}

/**
 * Asks the identity provider for the role of a sign-in, if a refresh is due and no other instance has claimed it. A new
 * role applies to all of the member's sign-ins. A member without a permitted group loses all sign-ins. A sign-in that
 * the provider has ended is revoked.
 *
 * Ordering: one instance claims the refresh in the database by moving its next due time.
 * Failure: never rejects. Without a response the role stays, and the first use after the next due time retries.
 */
export async function refreshRole({ database, now, oidc }: RoleServer, credentialId: string): Promise<void> {
  if (!oidc) return;
  try {
    const claimed = await database.writes.run((transaction) => {
      transaction.touch('access');
      return claimRefresh(transaction, credentialId, now());
    });
    if (claimed === null) return;
    const { iss: issuer, aud: audience } = oidc.grantClaims;
    const options = { issuer, audience, requiredClaims: ['sub', 'refreshToken'] };
    const key = await serverKey(database, 'refresh-token');
    const { sub: subject = '', refreshToken } = await open<{ refreshToken: string }>(claimed.sealed, key, options);
    const person = await oidc.refresh({ subject, email: claimed.email }, refreshToken, async (rotated) => {
      const sealed = await sealGrant(database, oidc, { subject, refreshToken: rotated });
      await database.writes.run((transaction) => storeGrant(transaction, credentialId, sealed));
    });
    await database.writes.run(async (transaction) => {
      transaction.touch('access');
      if (person === null) await endSignIn(transaction, credentialId, now());
      else await applyRefresh(transaction, credentialId, person, now());
    });
  } catch (error) {
    serverLog('warn', `Can’t refresh the role of sign-in ${credentialId}; it keeps its role until a retry succeeds:`, {
      error: forLog(error),
    });
  }
}

/** @returns the sealed grant and the member's email; null if nothing is due, or another instance claimed the refresh */
async function claimRefresh(
  transaction: WriteTransaction,
  credentialId: string,
  now: number,
): Promise<{ sealed: string; email: string | null } | null> {
  const { rows } = await transaction.execute({
    sql: `UPDATE credentials SET role_due_at = ?1 + min(max(?1 - role_checked_at - ?2, ?3), ?4)
      WHERE id = ?5 AND revoked_at IS NULL AND refresh_token IS NOT NULL AND role_due_at <= ?1
      RETURNING refresh_token, (SELECT email FROM members WHERE id = member_id) AS email`,
    args: [now, ROLE_MS, RETRY_MS, MAX_RETRY_MS, credentialId],
  });
  if (rows[0] === undefined) return null;
  // makes every instance read the next due time
  await bumpAccessVersion(transaction);
  const { refresh_token, email } = rows[0];
  return { sealed: String(refresh_token), email: email === null ? null : String(email) };
}

async function storeGrant(transaction: WriteTransaction, credentialId: string, sealed: string): Promise<void> {
  transaction.touch('access');
  await transaction.execute({
    sql: 'UPDATE credentials SET refresh_token = ? WHERE id = ? AND revoked_at IS NULL',
    args: [sealed, credentialId],
  });
}

async function applyRefresh(
  transaction: WriteTransaction,
  credentialId: string,
  { role, name, email }: RefreshedPerson,
  now: number,
): Promise<void> {
  const { rows } = await transaction.execute({
    sql: 'SELECT member_id FROM credentials WHERE id = ? AND revoked_at IS NULL',
    args: [credentialId],
  });
  const memberId = rows[0]?.member_id;
  if (typeof memberId !== 'string') return;
  if (role === null) {
    await endSignIn(transaction, credentialId, now);
    return revokeMembers(transaction, { sql: 'id = ?', args: [memberId] }, now);
  }
  const updated = await transaction.execute({
    sql: `UPDATE members SET name = ifnull(?, name), email = ifnull(?, email), role = ifnull(?, role) WHERE id = ?
      RETURNING ifnull(given_role, role) AS role`,
    args: [name ?? null, email ?? null, role ?? null, memberId],
  });
  await setMemberRole(transaction, { id: memberId, role: String(updated.rows[0]?.role) as Role }, now);
  await transaction.execute({
    sql: 'UPDATE credentials SET role_checked_at = ?, role_due_at = ? WHERE id = ?',
    args: [now, now + ROLE_MS, credentialId],
  });
  await bumpAccessVersion(transaction);
}

/** Revokes a sign-in that the provider has ended. */
async function endSignIn(transaction: WriteTransaction, credentialId: string, now: number): Promise<void> {
  const ended = await revokeCredentials(transaction, { sql: "kind = 'session' AND id = ?", args: [credentialId] }, now);
  if (ended.length > 0) await recordProviderLogout(transaction, credentialId, now);
}

/** Records in the audit that the provider ended a sign-in. */
export async function recordProviderLogout(
  transaction: WriteTransaction,
  credentialId: string,
  now: number,
): Promise<void> {
  const act = { action: 'end sign-in', agentId: null, sessionId: null, target: credentialId };
  const principal = { ...PROVIDER, credentialId };
  await recordAction(transaction, { principal, ...act, digest: '', origin: '' }, 'done', now);
}

const PROVIDER: Omit<Principal, 'credentialId'> = {
  id: 'provider',
  credentialKind: 'session',
  memberId: null,
  name: 'The identity provider',
  kind: 'human',
  role: 'viewer',
  scope: EVERYTHING,
  expiresAt: null,
  parentOrigin: null,
  redacts: false,
};
