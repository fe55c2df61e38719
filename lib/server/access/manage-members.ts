import type { ChangeMemberRequest, MemberList, MemberSummary } from '@interlude/protocol/access';
import { AppError } from '@interlude/protocol/errors';
import { MEMBER_ROLES, type Role } from '@interlude/protocol/scope';
import type { Row } from '@libsql/client';
import type { Database } from '@/db/client';
import { members } from '@/db/schema';
import { columnText, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import type { Asked } from './asked';
import { moveVersion, revokeCredentials } from './credential-rows';
import type { CredentialServer } from './manage-credentials';
import { may, type Principal } from './principal';

/**
 * People who came by the identity provider, and what admins make of them.
 *
 * Ordering: what a member may changes in the transaction that says so, for those who are signed in, too: within two
 * seconds everywhere.
 */

type Member = typeof members.$inferSelect;

const ROW = shapeOf(members);
const MOST_LISTED = 1_000;
/** Those who may administer, whether their groups or an admin made them so. */
const ARE_ADMINS = "blocked_at IS NULL AND ifnull(given_role, role) = 'admin'";
const MOST_NAMED = 3;

/** `GET /members`: by name. */
export async function getMembers(_: Asked, { database, now }: CredentialServer): Promise<MemberList> {
  return readMembers(database, now());
}

export async function readMembers({ reader }: Pick<Database, 'reader'>, now: number): Promise<MemberList> {
  const { rows } = await reader.execute({
    sql: `${selectMembers('TRUE')} ORDER BY name COLLATE NOCASE, id LIMIT ${MOST_LISTED + 1}`,
    args: [now, now],
  });
  return { members: rows.slice(0, MOST_LISTED).map(memberFromRow), hasMore: rows.length > MOST_LISTED };
}

/** The names of a few, for people who have to ask one. */
export async function readAdminNames({ reader }: Pick<Database, 'reader'>): Promise<string[]> {
  const { rows } = await reader.execute(
    `SELECT name FROM members WHERE ${ARE_ADMINS} ORDER BY last_sign_in_at DESC LIMIT ${MOST_NAMED}`,
  );
  return rows.map(({ name }) => String(name));
}

/**
 * `PUT /members/:memberId`: gives another role, blocks, or lets in again.
 *
 * @throws AppError `not_found`; `conflict` where members would be left without an admin by one of them
 */
export async function putMember(
  { ids: { memberId }, body, principal }: Asked<'memberId', { body: ChangeMemberRequest }>,
  { database, now, credentials }: CredentialServer,
): Promise<{ member: MemberSummary }> {
  const at = now();
  const member = await database.writes.run(async (transaction) => {
    transaction.touch('access');
    const before = await readMember(transaction, memberId);
    const after = changed(before, body, at);
    await transaction.execute({
      sql: 'UPDATE members SET given_role = ?, blocked_at = ? WHERE id = ?',
      args: [after.givenRole, after.blockedAt, after.id],
    });
    if (mayAdminister(before) && !mayAdminister(after)) await requireAnAdmin(transaction, after, principal);
    await carryOut(transaction, after, at);
    const { rows } = await transaction.execute({ sql: selectMembers('m.id = ?'), args: [at, at, after.id] });
    return memberFromRow(rows[0] as Row);
  });
  await credentials.changed();
  return { member };
}

function changed(member: Member, { role, blocked }: ChangeMemberRequest, now: number): Member {
  const blockedAt = blocked === undefined ? member.blockedAt : blocked ? (member.blockedAt ?? now) : null;
  return { ...member, blockedAt, givenRole: role === undefined ? member.givenRole : role };
}

/** What it means for those of a member's credentials that live. */
async function carryOut(transaction: WriteTransaction, member: Member, now: number): Promise<void> {
  if (member.blockedAt !== null) {
    await shutOut(transaction, { sql: 'id = ?', args: [member.id] }, now);
    return;
  }
  await setMemberRole(transaction, { id: member.id, role: roleOf(member) }, now);
}

/**
 * Ends the sign-ins of members, and the tokens that act in their place.
 *
 * @param which a condition on `members`, with its arguments
 */
export async function shutOut(
  transaction: WriteTransaction,
  which: { sql: string; args: string[] },
  now: number,
): Promise<void> {
  const { sql, args } = which;
  await endTokensOf(transaction, which, now);
  await revokeCredentials(transaction, { sql: `member_id IN (SELECT id FROM members WHERE ${sql})`, args }, now);
}

/**
 * Who may not make tokens any more keeps none that do what people do. Those of runners and consoles go on: what they are
 * for does not end with whoever set them up.
 */
async function endTokensOf(
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

/** What they may holds for all of their sign-ins. */
export async function setMemberRole(
  transaction: WriteTransaction,
  { id: memberId, role }: { id: string; role: Role },
  now: number,
): Promise<void> {
  if (!may({ role }, 'administer')) await endTokensOf(transaction, { sql: 'id = ?', args: [memberId] }, now);
  const { rows } = await transaction.execute({
    sql: `UPDATE credentials SET role = ? WHERE member_id = ? AND kind = 'session' AND revoked_at IS NULL AND role <> ?
      RETURNING id`,
    args: [role, memberId, role],
  });
  if (rows.length === 0) return;
  // who may not make embeds any more has none
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
  await moveVersion(transaction);
}

/** A member can't shut all members out. Whoever has this machine, or its token, is an admin without being one of them. */
async function requireAnAdmin(transaction: WriteTransaction, { id, name }: Member, asker: Principal): Promise<void> {
  if (asker.memberId === null) return;
  const { rows } = await transaction.execute(`SELECT 1 FROM members WHERE ${ARE_ADMINS} LIMIT 1`);
  if (rows.length > 0) return;
  const whom = asker.id === id ? 'You are' : `${name} is`;
  throw new AppError(
    'conflict',
    `${whom} the only admin: without one, nobody could let people in any more. Make somebody else an admin first.`,
  );
}

async function readMember(transaction: WriteTransaction, memberId: string): Promise<Member> {
  const { rows } = await transaction.execute({
    sql: `SELECT ${ROW.columns()} FROM members WHERE id = ?`,
    args: [columnText(memberId)],
  });
  const [row] = rows;
  if (row !== undefined) return ROW.read(row);
  throw new AppError(
    'not_found',
    `There is no member ${JSON.stringify(memberId)}. GET /api/v1/members lists those who have signed in.`,
  );
}

function selectMembers(which: string): string {
  return `SELECT ${ROW.columns('m')}, (SELECT count(*) FROM credentials AS c WHERE c.member_id = m.id
      AND c.kind = 'session' AND c.revoked_at IS NULL AND (c.expires_at IS NULL OR c.expires_at > ?)
      AND (c.idle_ms IS NULL OR c.last_used_at + c.idle_ms > ?)) AS sign_in_count FROM members AS m WHERE ${which}`;
}

function memberFromRow(row: Row): MemberSummary {
  const member = ROW.read(row);
  const { id, name, email, issuer, givenRole, createdAt, lastSignInAt, blockedAt } = member;
  const roles = { role: roleOf(member), groupRole: member.role, givenRole };
  const times = { createdAt, lastSignInAt, blockedAt };
  return { id, name, email, issuer, ...roles, ...times, signInCount: Number(row.sign_in_count) };
}

function mayAdminister(member: Member): boolean {
  return member.blockedAt === null && may({ role: roleOf(member) }, 'administer');
}

/** An admin's word counts for more than the provider's. */
export function roleOf({ givenRole, role }: Pick<Member, 'givenRole' | 'role'>): Member['role'] {
  return givenRole ?? role;
}
