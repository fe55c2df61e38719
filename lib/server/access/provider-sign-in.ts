import { withBasePath } from '@interlude/protocol/base-path.mjs';
import { AppError, toResponse } from '@interlude/protocol/errors';
import { EVERYTHING, type Role } from '@interlude/protocol/scope';
import { serverKey } from '@/db/server-keys';
import type { WriteTransaction } from '@/db/writes';
import { noteAct, textDigest } from './audit-entry';
import { originOf } from './audited';
import { principalOf } from './credential-book';
import { addCredential, revokeCredentials } from './credential-rows';
import { checkHost } from './host';
import { setMemberRole, shutOut } from './manage-members';
import { notLetIn, type OidcSignIn, type SignedInPerson } from './oidc/oidc-sign-in';
import type { PersonRole } from './oidc/role-of';
import { isSecure } from './own-address';
import { plainPage } from './plain-page';
import { noteEnd, roleColumns } from './role-refresh';
import { sessionCookie } from './session-cookie';
import type { SignInServer } from './sign-in';

/**
 * How the people of a team come in: by their identity provider, whose word on who they are and in which groups is
 * taken at each sign-in.
 *
 * Ordering: the member's row, the sign-in and its entry in the audit are one transaction. A role that changed holds for
 * the member's other sign-ins from then on.
 * Failure: whatever goes wrong on the way back is told to the person as a page, with what to do next.
 */
export interface ProviderServer extends SignInServer {
  /** @throws AppError `not_found` where no provider is set */
  provider(): OidcSignIn;
}

/** `GET /sign-in/provider?next=` */
export async function signInByProvider(request: Request, server: ProviderServer): Promise<Response> {
  checkHost(request, server.settings());
  return asPage(async () => {
    const provider = server.provider();
    const { database } = await server.context();
    return provider.begin(request, new URL(request.url).searchParams.get('next'), await serverKey(database, 'sign-in'));
  });
}

/** `GET /sign-in/callback` */
export async function finishSignIn(request: Request, server: ProviderServer): Promise<Response> {
  checkHost(request, server.settings());
  return asPage(async () => {
    const provider = server.provider();
    const { database, now, sessionIdleMs, sessionMs, credentials } = await server.context();
    const person = await provider.finish(request, await serverKey(database, 'sign-in'));
    if (person.role === null) {
      await database.writes.run((transaction) => letGo(transaction, person, now()), { keys: ['access'] });
      await credentials.changed();
      throw notLetIn(person);
    }
    const { role } = person;
    const columns = await roleColumns(database, provider, person, now());
    const secret = await database.writes.run(async (transaction) => {
      transaction.touch('access');
      const member = await takeMember(transaction, { ...person, role }, now());
      const made = await addCredential(transaction, {
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
      const about = { digest: textDigest(person.issuer), origin: originOf(request.headers) };
      await noteAct(transaction, { principal: principalOf(made.credential), ...act, ...about }, 'done', now());
      return made.secret;
    });
    await credentials.changed();
    const headers = new Headers({ location: withBasePath(person.next), 'cache-control': 'no-store' });
    headers.append('set-cookie', sessionCookie(secret, isSecure(request)));
    headers.append('set-cookie', person.clearedCookie);
    return new Response(null, { status: 303, headers });
  });
}

/** `POST /sign-in/back-channel-logout`: the provider says that somebody is signed out. */
export async function endByProvider(request: Request, server: ProviderServer): Promise<Response> {
  checkHost(request, server.settings());
  const { issuer } = server.provider();
  await server.provider().loggedOut(request, async ({ subject, providerSessionId, issuedAt }) => {
    const { database, now, credentials } = await server.context();
    await database.writes.run(async (transaction) => {
      transaction.touch('access');
      // Where the provider names the sign-in, that one; where it did not name it when it began, all of that person's.
      const which = {
        sql: `kind = 'session' AND member_id IN (SELECT id FROM members WHERE issuer = ?)
          AND (provider_session_id = ? OR ((? OR provider_session_id IS NULL) AND created_at <= ?
            AND member_id IN (SELECT id FROM members WHERE issuer = ? AND subject = ?)))`,
        args: [issuer, providerSessionId ?? '', providerSessionId === null ? 1 : 0, issuedAt, issuer, subject ?? ''],
      };
      const ended = await revokeCredentials(transaction, which, now());
      for (const credentialId of ended) await noteEnd(transaction, credentialId, now());
    });
    await credentials.changed();
  });
  return new Response(null, { status: 200, headers: { 'cache-control': 'no-store' } });
}

/** Somebody who was let in once is in no group any more that is: what is open of theirs ends. */
async function letGo(transaction: WriteTransaction, { issuer, subject }: SignedInPerson, now: number): Promise<void> {
  await shutOut(transaction, { sql: 'issuer = ? AND subject = ?', args: [issuer, subject] }, now);
}

/** @throws AppError `forbidden` for somebody whom an admin has shut out */
async function takeMember(
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
    throw new AppError(
      'forbidden',
      'An admin of this Interlude has shut you out. Ask one of them to let you in again.',
    );
  }
  const member = { id: String(row.id), role: String(row.role) as Role };
  await setMemberRole(transaction, member, now);
  return member;
}

/** What a person reads who came with a browser, and not with a program. */
async function asPage(answer: () => Promise<Response>): Promise<Response> {
  try {
    return await answer();
  } catch (error) {
    const { status } = toResponse(error);
    if (!(error instanceof AppError)) throw error;
    return plainPage(
      'You are not signed in',
      error.message,
      { href: withBasePath('/signed-out'), text: 'To the sign-in page' },
      status,
    );
  }
}
