import type { ChangeMemberRequest, MemberList, MemberSummary } from '@interlude/protocol/access';
import { AppError } from '@interlude/protocol/errors';
import { MEMBER_ROLES, type Role } from '@interlude/protocol/scope';
import type { Row } from '@libsql/client';
import type { Database } from '@/db/client';
import { members } from '@/db/schema';
import { columnText, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { bumpAccessVersion, revokeCredentials } from './credential-rows';
import type { CredentialContext } from './manage-credentials';
import { may, notFound, type Principal } from './principal';
import type { RequestContext } from './request-context';

/**
 * Members: people who signed in through the identity provider.
 *
 * Ordering: a role change updates existing sign-ins in the same transaction, and takes effect on all instances within
 * two seconds.
 */

type Member = typeof members.$inferSelect;

const ROW = shapeOf(members);
const MAX_LISTED = 1_000;
const IS_ADMIN = "blocked_at IS NULL AND ifnull(given_role, role) = 'admin'";
const MAX_NAMED = 3;

export async function getMembers(_: RequestContext, { database, now }: CredentialContext): Promise<MemberList> {
  return readMembers(database, now());
}

export async function readMembers({ reader }: Pick<Database, 'reader'>, now: number): Promise<MemberList> {
  const { rows } = await reader.execute({
    sql: `${selectMembers('TRUE')} ORDER BY name COLLATE NOCASE, id LIMIT ${MAX_LISTED + 1}`,
    args: [now, now],
  });
  return { members: rows.slice(0, MAX_LISTED).map(memberFromRow), hasMore: rows.length > MAX_LISTED };
}

/** Names of a few recently active admins. */
export async function readAdminNames({ reader }: Pick<Database, 'reader'>): Promise<string[]> {
  const { rows } = await reader.execute(
    `SELECT name FROM members WHERE ${IS_ADMIN} ORDER BY last_sign_in_at DESC LIMIT ${MAX_NAMED}`,
  );
  return rows.map(({ name }) => String(name));
}

/**
 * `PUT /members/:memberId`: changes the role, blocks or unblocks.
 *
 * @throws AppError `not_found`; `conflict` if a member would remove the last admin
 */
export async function putMember(
  { ids: { memberId }, body, principal }: RequestContext<'memberId', { body: ChangeMemberRequest }>,
  { database, now, credentials }: CredentialContext,
): Promise<{ member: MemberSummary }> {
  const at = now();
  const member = await database.writes.run(async (transaction) => {
    transaction.touch('access');
    const before = await readMember(transaction, memberId);
    const after = withChanges(before, body, at);
    await transaction.execute({
      sql: 'UPDATE members SET given_role = ?, blocked_at = ? WHERE id = ?',
      args: [after.givenRole, after.blockedAt, after.id],
    });
    if (mayAdminister(before) && !mayAdminister(after)) await requireAdminLeft(transaction, after, principal);
    await applyToCredentials(transaction, after, at);
    const { rows } = await transaction.execute({ sql: selectMembers('m.id = ?'), args: [at, at, after.id] });
    return memberFromRow(rows[0] as Row);
  });
  await credentials.invalidate();
  return { member };
}

function withChanges(member: Member, { role, blocked }: ChangeMemberRequest, now: number): Member {
  const blockedAt = blocked === undefined ? member.blockedAt : blocked ? (member.blockedAt ?? now) : null;
  return { ...member, blockedAt, givenRole: role === undefined ? member.givenRole : role };
}

async function applyToCredentials(transaction: WriteTransaction, member: Member, now: number): Promise<void> {
  if (member.blockedAt !== null) {
    await revokeMembers(transaction, { sql: 'id = ?', args: [member.id] }, now);
    return;
  }
  await setMemberRole(transaction, { id: member.id, role: effectiveRole(member) }, now);
}

/**
 * Revokes members' sign-ins and the tokens that act for them.
 *
 * @param where a condition on `members`, with its arguments
 */
export async function revokeMembers(
  transaction: WriteTransaction,
  where: { sql: string; args: string[] },
  now: number,
): Promise<void> {
  const { sql, args } = where;
  await revokeMemberTokens(transaction, where, now);
  await revokeCredentials(transaction, { sql: `member_id IN (SELECT id FROM members WHERE ${sql})`, args }, now);
}

/**
 * Revokes tokens with a member role once their creator may not create tokens. Runner and embed tokens keep working,
 * because they serve the team rather than the person.
 */
async function revokeMemberTokens(
  transaction: WriteTransaction,
  { sql, args }: { sql: string; args: string[] },
  now: number,
): Promise<void> {
  const made = `WITH RECURSIVE made (id) AS (
      SELECT id FROM credentials WHERE member_id IN (SELECT id FROM members WHERE ${sql})
      UNION SELECT c.id FROM credentials AS c JOIN made ON c.parent_id = made.id)
    SELECT id FROM made`;
  const tokens = `kind = 'token' AND role IN (SELECT value FROM json_each(?)) AND id IN (${made})`;
  await revokeCredentials(transaction, { sql: tokens, args: [JSON.stringify(MEMBER_ROLES), ...args] }, now);
}

/** Applies a role to all of a member's sign-ins. */
export async function setMemberRole(
  transaction: WriteTransaction,
  { id: memberId, role }: { id: string; role: Role },
  now: number,
): Promise<void> {
  if (!may({ role }, 'administer')) await revokeMemberTokens(transaction, { sql: 'id = ?', args: [memberId] }, now);
  const { rows } = await transaction.execute({
    sql: `UPDATE credentials SET role = ? WHERE member_id = ? AND kind = 'session' AND revoked_at IS NULL AND role <> ?
      RETURNING id`,
    args: [role, memberId, role],
  });
  if (rows.length === 0) return;
  // revoke embeds that the role may no longer create
  if (!may({ role }, 'issue')) {
    await revokeCredentials(
      transaction,
      {
        sql: "kind = 'embed' AND parent_id IN (SELECT value FROM json_each(?))",
        args: [JSON.stringify(rows.map(({ id }) => String(id)))],
      },
      now,
    );
  }
  await bumpAccessVersion(transaction);
}

/** Refuses to let a member remove the last admin. The owner and local admins are not members and may. */
async function requireAdminLeft(transaction: WriteTransaction, { id, name }: Member, sender: Principal): Promise<void> {
  if (sender.memberId === null) return;
  const { rows } = await transaction.execute(`SELECT 1 FROM members WHERE ${IS_ADMIN} LIMIT 1`);
  if (rows.length > 0) return;
  const subject = sender.id === id ? 'You are' : `${name} is`;
  throw new AppError('conflict', `${subject} the only admin. Make another member an admin first.`);
}

async function readMember(transaction: WriteTransaction, memberId: string): Promise<Member> {
  const { rows } = await transaction.execute({
    sql: `SELECT ${ROW.columns()} FROM members WHERE id = ?`,
    args: [columnText(memberId)],
  });
  const [row] = rows;
  if (row !== undefined) return ROW.read(row);
  throw notFound('member', memberId, '/members');
}

function selectMembers(where: string): string {
  return `SELECT ${ROW.columns('m')}, (SELECT count(*) FROM credentials AS c WHERE c.member_id = m.id
      AND c.kind = 'session' AND c.revoked_at IS NULL AND (c.expires_at IS NULL OR c.expires_at > ?)
      AND (c.idle_ms IS NULL OR c.last_used_at + c.idle_ms > ?)) AS sign_in_count FROM members AS m WHERE ${where}`;
}

function memberFromRow(row: Row): MemberSummary {
  const member = ROW.read(row);
  const { id, name, email, issuer, givenRole, createdAt, lastSignInAt, blockedAt } = member;
  const roles = { role: effectiveRole(member), groupRole: member.role, givenRole };
  const times = { createdAt, lastSignInAt, blockedAt };
  return { id, name, email, issuer, ...roles, ...times, signInCount: Number(row.sign_in_count) };
}

function mayAdminister(member: Member): boolean {
  return member.blockedAt === null && may({ role: effectiveRole(member) }, 'administer');
}

/** A role set by an admin overrides the provider's. */
function effectiveRole({ givenRole, role }: Pick<Member, 'givenRole' | 'role'>): Member['role'] {
  return givenRole ?? role;
}
