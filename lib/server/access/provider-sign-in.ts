import { withBasePath } from '@interlude/protocol/base-path.mjs';
import { AppError, toResponse } from '@interlude/protocol/errors';
import { EVERYTHING, type Role } from '@interlude/protocol/scope';
import { serverKey } from '@/db/server-keys';
import type { WriteTransaction } from '@/db/writes';
import { recordAction, requestSource } from './audit';
import { addCredential, principalOf, revokeCredentials } from './credential-rows';
import { revokeMembers, setMemberRole } from './manage-members';
import { noRoleError, type OidcSignIn, type SignedInPerson } from './oidc/oidc-sign-in';
import type { PersonRole } from './oidc/person-claims';
import { checkHost } from './request-origin';
import { recordProviderLogout, roleColumns } from './role-refresh';
import { textDigest } from './secret';
import { isSecure, sessionCookie } from './session-cookie';
import type { SignInContext } from './sign-in';
import { plainPage } from './sign-in-pages';

export interface ProviderSignInContext extends SignInContext {
  /** @throws AppError `not_found` without a configured provider */
  provider(): OidcSignIn;
}

/** `GET /sign-in/provider?next=` */
export async function startProviderSignIn(request: Request, server: ProviderSignInContext): Promise<Response> {
  checkHost(request, server.settings());
  return withErrorPage(async () => {
    const provider = server.provider();
    const { database } = await server.context();
    return provider.begin(request, new URL(request.url).searchParams.get('next'), await serverKey(database, 'sign-in'));
  });
}

/**
 * `GET /sign-in/callback`: signs in with the identity and groups that the team's identity provider supplies each time.
 *
 * Ordering: the member's row, the sign-in and its audit entry commit together. A changed role applies to the member's
 * other sign-ins in the same transaction.
 * Failure: every error becomes a page with the next step.
 */
export async function finishProviderSignIn(request: Request, server: ProviderSignInContext): Promise<Response> {
  checkHost(request, server.settings());
  return withErrorPage(async () => {
    const provider = server.provider();
    const { database, now, sessionIdleMs, sessionMs, credentials } = await server.context();
    const person = await provider.finish(request, await serverKey(database, 'sign-in'));
    if (person.role === null) {
      const where = { sql: 'issuer = ? AND subject = ?', args: [person.issuer, person.subject] };
      await database.writes.run((transaction) => revokeMembers(transaction, where, now()), { keys: ['access'] });
      await credentials.invalidate();
      throw noRoleError(person);
    }
    const { role } = person;
    const columns = await roleColumns(database, provider, person, now());
    const secret = await database.writes.run(async (transaction) => {
      transaction.touch('access');
      const member = await upsertMember(transaction, { ...person, role }, now());
      const created = await addCredential(transaction, {
        kind: 'session',
        name: person.name,
        role: member.role,
        scope: EVERYTHING,
        now: now(),
        expiresAt: now() + sessionMs,
        idleMs: sessionIdleMs,
        memberId: member.id,
        providerSessionId: person.providerSessionId,
        ...columns,
      });
      const act = { action: 'sign in', agentId: null, sessionId: null, target: '/sign-in/callback' };
      const about = { digest: textDigest(person.issuer), origin: requestSource(request.headers) };
      await recordAction(transaction, { principal: principalOf(created.credential), ...act, ...about }, 'done', now());
      return created.secret;
    });
    await credentials.invalidate();
    const headers = new Headers({ location: withBasePath(person.next), 'cache-control': 'no-store' });
    headers.append('set-cookie', sessionCookie(secret, isSecure(request)));
    headers.append('set-cookie', person.clearedCookie);
    return new Response(null, { status: 303, headers });
  });
}

/** `POST /sign-in/back-channel-logout` */
export async function backChannelLogout(request: Request, server: ProviderSignInContext): Promise<Response> {
  checkHost(request, server.settings());
  const { issuer } = server.provider();
  await server.provider().backChannelLogout(request, async ({ subject, providerSessionId, issuedAt }) => {
    const { database, now, credentials } = await server.context();
    await database.writes.run(async (transaction) => {
      transaction.touch('access');
      // Selects the sign-in with the provider's session id, or all of the person's if either side has no session id.
      const where = {
        sql: `kind = 'session' AND member_id IN (SELECT id FROM members WHERE issuer = ?)
          AND (provider_session_id = ? OR ((? OR provider_session_id IS NULL) AND created_at <= ?
            AND member_id IN (SELECT id FROM members WHERE issuer = ? AND subject = ?)))`,
        args: [issuer, providerSessionId ?? '', providerSessionId === null ? 1 : 0, issuedAt, issuer, subject ?? ''],
      };
      const ended = await revokeCredentials(transaction, where, now());
      for (const credentialId of ended) await recordProviderLogout(transaction, credentialId, now());
    });
    await credentials.invalidate();
  });
  return new Response(null, { status: 200, headers: { 'cache-control': 'no-store' } });
}

/** @throws AppError `forbidden` for a blocked member */
async function upsertMember(
  transaction: WriteTransaction,
  { issuer, subject, name, email, role }: SignedInPerson & { role: PersonRole },
  now: number,
): Promise<{ id: string; role: Role }> {
  const { rows } = await transaction.execute({
    sql: `INSERT INTO members (id, issuer, subject, name, email, role, created_at, last_sign_in_at)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)
      ON CONFLICT (issuer, subject) DO UPDATE SET name = excluded.name, email = excluded.email, role = excluded.role,
        last_sign_in_at = excluded.last_sign_in_at
      RETURNING id, ifnull(given_role, role) AS role, blocked_at`,
    args: [`member-${crypto.randomUUID()}`, issuer, subject, name, email, role, now],
  });
  const [row] = rows;
  if (row === undefined || row.blocked_at !== null) {
    throw new AppError('forbidden', 'An admin has blocked you. Ask an admin to unblock you.');
  }
  const member = { id: String(row.id), role: String(row.role) as Role };
  await setMemberRole(transaction, member, now);
  return member;
}

/** Renders an error as a page, because the sender is a browser. */
async function withErrorPage(respond: () => Promise<Response>): Promise<Response> {
  try {
    return await respond();
  } catch (error) {
    const { status } = toResponse(error);
    if (!(error instanceof AppError)) throw error;
    return plainPage(
      'You are not signed in',
      error.message,
      { href: withBasePath('/signed-out'), text: 'Go to the sign-in page' },
      status,
    );
  }
}
