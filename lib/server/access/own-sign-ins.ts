import type { OwnSignIns } from '@interlude/protocol/access';
import { AppError } from '@interlude/protocol/errors';
import type { Database } from '@/db/client';
import type { Asked } from './asked';
import { CREDENTIAL_COLUMNS, credentialFromRow, isLive, revokeCredentials } from './credential-rows';
import { type CredentialServer, summaryOf } from './manage-credentials';
import type { Principal } from './principal';

const MOST_LISTED = 200;

/** `GET /me/sign-ins`: where the sender is signed in, the last used first. */
export async function getOwnSignIns(
  { principal }: Asked,
  { database, now }: Pick<CredentialServer, 'database' | 'now'>,
): Promise<OwnSignIns> {
  return readOwnSignIns(database, principal, now());
}

export async function readOwnSignIns(
  { reader }: Pick<Database, 'reader'>,
  principal: Principal,
  now: number,
): Promise<OwnSignIns> {
  const { sql, args } = ofSamePerson(principal);
  const { rows } = await reader.execute({
    sql: `SELECT ${CREDENTIAL_COLUMNS} FROM credentials WHERE revoked_at IS NULL AND ${sql}
      ORDER BY last_used_at DESC LIMIT ${MOST_LISTED}`,
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
 * `DELETE /me/sign-ins`: ends all of them but the one that asks.
 *
 * @throws AppError `forbidden`; `conflict` if there is no other: what ends nothing is no act for the audit
 */
export async function deleteOwnSignIns(
  { principal }: Asked,
  { database, now, credentials }: CredentialServer,
): Promise<OwnSignIns> {
  if (principal.credentialKind !== 'session') {
    throw new AppError('forbidden', 'Only somebody who is signed in has other sign-ins.');
  }
  const { sql, args } = ofSamePerson(principal);
  await database.writes.run(async (transaction) => {
    transaction.touch('access');
    const which = { sql: `${sql} AND id <> ?`, args: [...args, principal.credentialId] };
    const ended = await revokeCredentials(transaction, which, now(), { keptId: principal.credentialId });
    if (ended.length === 0) throw new AppError('conflict', 'You are signed in nowhere else: there is nothing to end.');
  });
  await credentials.changed();
  return readOwnSignIns(database, principal, now());
}

/**
 * A condition on `credentials`. Who came in on this machine is no member: there the name says who it is. Of what is no
 * person's sign-in there are none.
 */
function ofSamePerson({ memberId, name, credentialId }: Principal): { sql: string; args: string[] } {
  return memberId === null
    ? {
        sql: `kind = 'session' AND member_id IS NULL AND name = ?
          AND EXISTS (SELECT 1 FROM credentials WHERE id = ? AND kind = 'session')`,
        args: [name, credentialId],
      }
    : { sql: `kind = 'session' AND member_id = ?`, args: [memberId] };
}
