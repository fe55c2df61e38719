import { BASE_PATH, withBasePath } from '@interlude/protocol/base-path.mjs';
import { AppError } from '@interlude/protocol/errors';
import { EVERYTHING } from '@interlude/protocol/scope';
import { withoutQuotes } from '@interlude/protocol/text';
import type { WriteTransaction } from '@/db/writes';
import { LOCAL_SESSION_MS } from './access-settings';
import { describeAction, recordAction } from './audit';
import { type Authenticator, authenticate, sessionPrincipal } from './authenticate';
import { clientAddress } from './client-address';
import type { CredentialCache } from './credential-cache';
import {
  addDerivedCredential,
  CREDENTIAL_COLUMNS,
  credentialFromRow,
  isLive,
  principalOf,
  readCredential,
  revokeCredentials,
} from './credential-rows';
import { LOCAL_ADMIN, OWNER, type Principal } from './principal';
import type { ServerContext } from './request-context';
import { checkFormOrigin, checkHost, hostOf, isDocumentRequest, requestInitiator } from './request-origin';
import { isSecret, sameSecret, textDigest } from './secret';
import { clearedCookie, isSecure, localNameOrigin, sessionCookie, sessionSecret } from './session-cookie';
import { nextPath, plainPage, readForm } from './sign-in-pages';

/**
 * Local sign-in: with a single-use link that is valid for five minutes, or by pasting the owner's token into a form.
 *
 * A link signs in immediately only if the person opened it directly. Otherwise a button asks for confirmation, because
 * any page could sign a browser in as another person, or use up the link.
 *
 * Failure: a used or expired code leads to a page that explains how to get a new one.
 */

export const SIGNED_OUT_PATH = '/signed-out';

const MAX_FORM_BYTES = 16 * 1024;

export const CODE_LIFETIME_MS = 5 * 60_000;

export interface SignInContext extends Authenticator {
  /** URL that signs a browser out at the identity provider; null without one, or if it doesn't respond. */
  providerSignOutUrl(): Promise<string | null>;
  context(): Promise<
    Pick<ServerContext, 'database' | 'now' | 'sessionIdleMs' | 'sessionMs'> & { credentials: CredentialCache }
  >;
}

/** `ended`: the browser had a sign-in that is no longer valid. */
export type SignInFailure = 'wrong-token' | 'old-link' | 'ended';

/**
 * `GET /sign-in?token=&next=`: signs in with the code in a link and redirects to `next`, or asks for confirmation
 * first. Also accepts the owner's token, which is never printed.
 */
export async function signIn(request: Request, server: SignInContext): Promise<Response> {
  const settings = server.settings();
  checkHost(request, settings);
  const url = new URL(request.url);
  const token = url.searchParams.get('token');
  const next = nextPath(url.searchParams.get('next'));
  if (token === null) {
    if ((await sessionPrincipal(request.headers, server)) !== null) return redirect(next);
    return redirect(signedOutPath(next, hasSessionCookie(request.headers) ? 'ended' : undefined));
  }
  const initiator = requestInitiator(request, settings);
  // programs other than browsers may not resolve such names
  const isBrowser = initiator !== 'prefetch' && isDocumentRequest(request.headers);
  const own = localNameOrigin(request.headers, { localName: settings.localName, isSecure: isSecure(request) });
  // only with a valid code: the redirect reveals the local name, and browsers send its cookie to every port
  if (own !== null && isBrowser && (await isValidCode(server, token)))
    return redirect(`${own}${withBasePath(`${url.pathname}${url.search}`)}`);
  return initiator === 'person'
    ? completeSignIn(request, server, token, next)
    : confirmationPage(request, server, { token, next }, initiator);
}

/** The page is the same for an invalid code, so it reveals nothing about the code. */
async function confirmationPage(
  request: Request,
  server: SignInContext,
  fields: { token: string; next: string },
  initiator: 'prefetch' | 'page',
): Promise<Response> {
  const current = await sessionPrincipal(request.headers, server);
  const name = current === null ? null : withoutQuotes(current.name);
  const instead = name === null ? '' : ` This signs out “${name}”.`;
  const text = `This link signs your browser in at ${hostOf(request)} as “${LOCAL_ADMIN}”.${instead} Continue only if you requested the link yourself, with “npm start” or “interlude sign-in”.`;
  // browsers discard a failed prefetch and request the page again
  const status = initiator === 'prefetch' ? 503 : 200;
  return plainPage('Sign in?', text, { action: '/sign-in', fields, text: 'Sign in' }, status);
}

/** `POST /sign-in`: signs in with a pasted token. */
export async function signInByForm(request: Request, server: SignInContext): Promise<Response> {
  checkHost(request, server.settings());
  checkFormOrigin(request);
  const form = new URLSearchParams(await readForm(request, 'sign-in', MAX_FORM_BYTES));
  return completeSignIn(request, server, form.get('token')?.trim() ?? '', nextPath(form.get('next')));
}

/**
 * `POST /sign-out`: revokes the sign-in and ends its streams on all instances. A form may name the principal that it
 * signs out.
 */
export async function signOut(request: Request, server: SignInContext): Promise<Response> {
  const principal = await authenticate(request, server);
  if (principal.credentialKind !== 'session') {
    throw new AppError(
      'forbidden',
      'Only a sign-in can be signed out. To revoke a token, run "interlude tokens revoke <id>".',
    );
  }
  const composedBy = new URLSearchParams(await readForm(request, 'sign-out', MAX_FORM_BYTES)).get('principal');
  if (composedBy && composedBy !== principal.id) {
    const text =
      'Another person has signed in with this browser since you opened that page. To sign them out, open the dashboard.';
    return plainPage('No one was signed out', text, { href: withBasePath('/'), text: 'Open the dashboard' }, 409);
  }
  const { database, now, credentials } = await server.context();
  await database.writes.run(async (transaction) => {
    transaction.touch('access');
    await revokeCredentials(transaction, { sql: "kind = 'session' AND id = ?", args: [principal.credentialId] }, now());
    await recordAction(transaction, describeAction(request, principal, 'sign out', {}, null), 'done', now());
  });
  await credentials.invalidate();
  // a member is signed out at the provider too
  const elsewhere = principal.memberId === null ? null : await server.providerSignOutUrl();
  const cleared = { 'set-cookie': clearedCookie(isSecure(request)), ...CLEARED_STORAGE };
  return elsewhere === null ? redirect(signedOutPath('/', 'ended'), cleared) : providerSignOutPage(elsewhere, cleared);
}

/**
 * Clears the browser's storage for this origin. Not under a base path, where other applications share the origin.
 * There, and in browsers that ignore the header, `/signed-out` clears our own storage.
 */
const CLEARED_STORAGE: Record<string, string> = BASE_PATH === '' ? { 'clear-site-data': '"storage"' } : {};

/** Our form policy forbids redirects to another server, but a page may refresh to one. */
function providerSignOutPage(address: string, headers: Record<string, string>): Response {
  const link = { href: address, text: 'Sign out at your identity provider too' };
  const page = plainPage('You are signed out', 'Redirecting to your identity provider…', link, 200);
  page.headers.set('refresh', `0; url=${address}`);
  for (const [name, value] of Object.entries(headers)) page.headers.set(name, value);
  return page;
}

export function signedOutPath(next: string, reason?: SignInFailure): string {
  const query = new URLSearchParams();
  if (reason !== undefined) query.set('reason', reason);
  if (next !== '/') query.set('next', next);
  return query.size === 0 ? SIGNED_OUT_PATH : `${SIGNED_OUT_PATH}?${query}`;
}

export function hasSessionCookie(headers: Headers): boolean {
  return sessionSecret(headers) !== null;
}

async function completeSignIn(request: Request, server: SignInContext, token: string, next: string): Promise<Response> {
  const { token: ours, proxies } = server.settings();
  const address = clientAddress(request.headers, proxies);
  if (!isSecret(token)) await server.throttle.admit(address, request.signal);
  const isOwner = sameSecret(token, ours);
  if (!isOwner && !isSecret(token)) {
    server.throttle.recordFailure(address);
    return redirect(signedOutPath(next, 'wrong-token'));
  }
  // guesses of unknown senders write nothing to the database
  if (!isOwner && !(await isValidCode(server, token))) return redirect(signedOutPath(next, 'old-link'));
  const { database, now, sessionIdleMs, credentials } = await server.context();
  const secret = await database.writes.run(async (transaction) => {
    transaction.touch('access');
    const creator = isOwner ? OWNER : await redeemCode(transaction, token, now());
    if (creator === null) return null;
    const created = await addDerivedCredential(transaction, creator, {
      kind: 'session',
      name: LOCAL_ADMIN,
      // The owner's token signs in as admin; acting as an agent needs the token itself.
      role: 'admin',
      scope: EVERYTHING,
      now: now(),
      expiresAt: now() + LOCAL_SESSION_MS,
      idleMs: sessionIdleMs,
    });
    const act = describeAction(request, principalOf(created.credential), 'sign in', {}, null);
    // the URL contains the secret, so its digest must not be recorded
    await recordAction(transaction, { ...act, digest: '' }, 'done', now());
    return created.secret;
  });
  if (secret === null) return redirect(signedOutPath(next, 'old-link'));
  await credentials.invalidate();
  return redirect(next, { 'set-cookie': sessionCookie(secret, isSecure(request)) });
}

/** Checks a code without spending it. */
async function isValidCode(server: SignInContext, code: string): Promise<boolean> {
  if (!isSecret(code)) return false;
  const { database, now } = await server.context();
  const { rows } = await database.reader.execute({ sql: SELECT_CODE, args: [textDigest(code)] });
  return rows[0] !== undefined && isLive(credentialFromRow(rows[0]), now());
}

const SELECT_CODE = `SELECT ${CREDENTIAL_COLUMNS} FROM credentials WHERE hash = ? AND kind = 'code'`;

/** @returns the code's creator; null for a spent, expired or unknown code */
async function redeemCode(transaction: WriteTransaction, code: string, now: number): Promise<Principal | null> {
  const { rows } = await transaction.execute({ sql: SELECT_CODE, args: [textDigest(code)] });
  const [row] = rows;
  if (row === undefined) return null;
  const credential = credentialFromRow(row);
  if (!isLive(credential, now)) return null;
  await revokeCredentials(transaction, { sql: 'id = ?', args: [credential.id] }, now);
  // without a row, the parent is the owner's token: rows of other parents are never deleted
  const parent = await readCredential(transaction, credential.parentId);
  return parent === null ? OWNER : principalOf(parent);
}

/** @param place a path on this server, or a URL */
function redirect(place: string, headers: Record<string, string> = {}): Response {
  const location = place.startsWith('/') ? withBasePath(place) : place;
  return new Response(null, { status: 303, headers: { location, 'cache-control': 'no-store', ...headers } });
}
