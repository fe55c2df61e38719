import type { Row } from '@libsql/client';
import { credentials } from '@/db/schema';
import { RowWriter, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import type { CredentialKind, Role, Scope } from '@/lib/protocol/scope';
import { makeSecret, secretHash } from './secret';

/**
 * Writing credentials. Whatever changes one moves `access.version` in the same transaction, so that every process that
 * remembers it looks again (see credential-book.ts).
 */

export type Credential = Omit<typeof credentials.$inferSelect, 'hash'>;

const ROW = shapeOf(credentials);
const CREDENTIALS = new RowWriter(credentials, { keeps: [] });

export interface NewCredential {
  kind: CredentialKind;
  name: string;
  role: Role;
  scope: Scope;
  now: number;
  expiresAt: number | null;
  idleMs?: number | null;
  parentId?: string | null;
  parentOrigin?: string | null;
  redacts?: boolean;
  memberId?: string | null;
  providerSessionId?: string | null;
  refreshToken?: string | null;
  roleCheckedAt?: number | null;
  roleDueAt?: number | null;
}

/** For how long embeds and codes are kept that are over: they last for minutes, and there is one for every look. */
const KEPT_MS = 30 * 24 * 3_600_000;
const MOST_REMOVED = 100;

/** @returns the secret, which nobody can read again, and what is kept */
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
      SELECT id FROM credentials WHERE expires_at < ? AND kind IN ('embed', 'code') LIMIT ${MOST_REMOVED})`,
    args: [now - KEPT_MS],
  });
  await transaction.execute(CREDENTIALS.one({ ...credential, hash: secretHash(secret) }));
  await moveVersion(transaction);
  return { secret, credential };
}

/**
 * Ends credentials, and the embeds that were made with them. Tokens go on: whoever made one may sign out. What becomes
 * of them when their maker is shut out, manage-members.ts says.
 *
 * @param which a condition on `credentials`, with its arguments
 * @returns the ids of those that it chose and that were live
 */
export async function revokeCredentials(
  transaction: WriteTransaction,
  which: { sql: string; args: (string | number)[] },
  now: number,
): Promise<string[]> {
  const { rows } = await transaction.execute({
    sql: `UPDATE credentials SET revoked_at = ?, refresh_token = NULL WHERE revoked_at IS NULL AND ${which.sql} RETURNING id`,
    args: [now, ...which.args],
  });
  const ids = rows.map(({ id }) => String(id));
  if (ids.length === 0) return ids;
  await transaction.execute({
    sql: `UPDATE credentials SET revoked_at = ? WHERE revoked_at IS NULL AND kind = 'embed'
      AND parent_id IN (SELECT value FROM json_each(?))`,
    args: [now, JSON.stringify(ids)],
  });
  await moveVersion(transaction);
  return ids;
}

export async function moveVersion(transaction: WriteTransaction): Promise<void> {
  await transaction.execute('UPDATE access SET version = version + 1');
}

export const CREDENTIAL_COLUMNS = ROW.columns();

export function credentialFromRow(row: Row): Credential & { hash: string } {
  return ROW.read(row);
}

/** Whether it lets anybody in at that time. */
export function isLive({ revokedAt, expiresAt, idleMs, lastUsedAt }: Credential, now: number): boolean {
  if (revokedAt !== null) return false;
  if (expiresAt !== null && expiresAt <= now) return false;
  return idleMs === null || lastUsedAt + idleMs > now;
}
