import { BASE_PATH, withBasePath } from '@interlude/protocol/base-path.mjs';
import { AppError } from '@interlude/protocol/errors';
import { EVERYTHING } from '@interlude/protocol/scope';
import { withoutQuotes } from '@interlude/protocol/text';
import type { WriteTransaction } from '@/db/writes';
import { LOCAL_SESSION_MS } from './access-settings';
import { noteAct } from './audit-entry';
import { actOf } from './audited';
import { authenticate, type Doorkeeper, signedIn } from './authenticate';
import { begunBy, isForPage } from './begun-by';
import { clientAddress } from './client-address';
import { type CredentialBook, principalOf } from './credential-book';
import { addMadeCredential, CREDENTIAL_COLUMNS, credentialFromRow, isLive, revokeCredentials } from './credential-rows';
import { sameSecret } from './digest';
import { formText } from './form-text';
import { checkHost, hostOf } from './host';
import { nextPath } from './next-path';
import { isSecure, ownAddress } from './own-address';
import { LOCAL_ADMIN } from './person-of';
import { plainPage } from './plain-page';
import { OWNER, type Principal } from './principal';
import { checkOwnForm } from './same-origin';
import { isSecret, secretHash } from './secret';
import type { ServerContext } from './server-context';
import { clearedCookie, sessionCookie, sessionOf } from './session-cookie';

/**
 * How a person comes in on this machine: with a link that holds a code, good once and for five minutes, or by pasting
 * the installation's token into a form.
 *
 * A link signs in at once only whoever opened it themselves: otherwise any page could have a browser act in the name of
 * whoever made the link, or use the link up. Where a page led to it, one press of a button says that it is meant.
 *
 * Failure: a code that was used, or is too old, leads to the page that says how to get another.
 */

/** The page that says how to sign in. `next` is where the visitor wanted to go, `reason` why the sign-in failed. */
export const SIGNED_OUT_PATH = '/signed-out';

/** Form bodies hold a token and a path; anything longer is not a sign-in. */
const MAX_FORM_BYTES = 16 * 1024;

export const CODE_LIFETIME_MS = 5 * 60_000;

/** What signing in needs beside the doorkeeper. */
export interface SignInServer extends Doorkeeper {
  /** Where a browser signs out at the identity provider; null where there is none, or it does not answer. */
  endAtProvider(): Promise<string | null>;
  context(): Promise<
    Pick<ServerContext, 'database' | 'now' | 'sessionIdleMs' | 'sessionMs'> & { credentials: CredentialBook }
  >;
}

/** `ended`: somebody was signed in, and is not any more. */
export type SignInTrouble = 'wrong-token' | 'old-link' | 'ended';

/**
 * `GET /sign-in?token=&next=`: the link that is printed at start. Goes on to `next`, signed in, or asks first. What is in
 * the link is a code that is spent by this; the installation's own token is taken, too, and printed nowhere.
 */
export async function signIn(request: Request, server: SignInServer): Promise<Response> {
  const settings = server.settings();
  checkHost(request, settings);
  const url = new URL(request.url);
  const token = url.searchParams.get('token');
  const next = nextPath(url.searchParams.get('next'));
  if (token === null) {
    if ((await signedIn(request.headers, server)) !== null) return goTo(next);
    return goTo(signedOutPath(next, wasSignedIn(request.headers) ? 'ended' : undefined));
  }
  const who = begunBy(request, settings);
  // programs may not know such names
  const isBrowser = who !== 'ahead' && isForPage(request.headers);
  const own = ownAddress(request.headers, { localName: settings.localName, isSecure: isSecure(request) });
  // to nobody without a code that is good: who knows the name can have a browser send its cookie elsewhere
  if (own !== null && isBrowser && (await isGoodCode(server, token)))
    return goTo(`${own}${withBasePath(`${url.pathname}${url.search}`)}`);
  return who === 'person' ? enter(request, server, token, next) : askFirst(request, server, { token, next }, who);
}

/** Tells nothing of the code: what it says is the same for one that is made up. */
async function askFirst(
  request: Request,
  server: SignInServer,
  fields: { token: string; next: string },
  who: 'ahead' | 'elsewhere',
): Promise<Response> {
  const current = await signedIn(request.headers, server);
  const name = current === null ? null : withoutQuotes(current.name);
  const instead = name === null ? '' : ` It is signed in as “${name}” now, and would be no more.`;
  const text = `A link would sign this browser in at ${hostOf(request)} as “${LOCAL_ADMIN}”.${instead} Do that only if you asked for the link yourself: “npm start” and “interlude sign-in” print such links.`;
  // what was fetched ahead and failed is asked for again by whoever goes there
  const status = who === 'ahead' ? 503 : 200;
  return plainPage('Sign in?', text, { action: '/sign-in', fields, text: 'Sign in' }, status);
}

/** `POST /sign-in`: the same from a form, so that a token can be pasted. */
export async function signInByForm(request: Request, server: SignInServer): Promise<Response> {
  checkHost(request, server.settings());
  checkOwnForm(request);
  const form = new URLSearchParams(await formText(request, 'sign-in', MAX_FORM_BYTES));
  return enter(request, server, form.get('token')?.trim() ?? '', nextPath(form.get('next')));
}

/** `POST /sign-out`: the sign-in ends everywhere, with all its streams. A form may name the person it is for. */
export async function signOut(request: Request, server: SignInServer): Promise<Response> {
  const principal = await authenticate(request, server);
  if (principal.credentialKind !== 'session') {
    throw new AppError(
      'forbidden',
      'Only a sign-in is signed out. Revoke a token with "interlude tokens revoke <id>".',
    );
  }
  const composedBy = new URLSearchParams(await formText(request, 'sign-out', MAX_FORM_BYTES)).get('principal');
  if (composedBy && composedBy !== principal.id) {
    const text =
      'Another person has signed in with this browser since you opened that page. To sign them out, open the dashboard.';
    return plainPage('Nobody was signed out', text, { href: withBasePath('/'), text: 'Open the dashboard' }, 409);
  }
  const { database, now, credentials } = await server.context();
  await database.writes.run(async (transaction) => {
    transaction.touch('access');
    await revokeCredentials(transaction, { sql: "kind = 'session' AND id = ?", args: [principal.credentialId] }, now());
    await noteAct(transaction, actOf(request, principal, 'sign out', {}, null), 'done', now());
  });
  await credentials.changed();
  // whose sign-in is the provider's is signed out there, too
  const elsewhere = principal.memberId === null ? null : await server.endAtProvider();
  const left = { 'set-cookie': clearedCookie(isSecure(request)), ...CLEARED_STORAGE };
  return elsewhere === null ? goTo(signedOutPath('/', 'ended'), left) : goOnElsewhere(elsewhere, left);
}

/**
 * Nothing that was typed or chosen stays in the browser. Beneath a path the origin has other owners, whose storage this
 * would clear, too: there, and where browsers ignore it, the page `/signed-out` removes what is ours.
 */
const CLEARED_STORAGE: Record<string, string> = BASE_PATH === '' ? { 'clear-site-data': '"storage"' } : {};

/** A form of ours may lead to this server only, redirects and all; a page may lead on. */
function goOnElsewhere(address: string, headers: Record<string, string>): Response {
  const link = { href: address, text: 'Sign out at your identity provider, too' };
  const page = plainPage('You are signed out', 'You are led on to your identity provider.', link, 200);
  page.headers.set('refresh', `0; url=${address}`);
  for (const [name, value] of Object.entries(headers)) page.headers.set(name, value);
  return page;
}

export function signedOutPath(next: string, reason?: SignInTrouble): string {
  const query = new URLSearchParams();
  if (reason !== undefined) query.set('reason', reason);
  if (next !== '/') query.set('next', next);
  return query.size === 0 ? SIGNED_OUT_PATH : `${SIGNED_OUT_PATH}?${query}`;
}

/** Whether a browser was signed in once: it keeps what let it in. */
export function wasSignedIn(headers: Headers): boolean {
  return sessionOf(headers) !== null;
}

async function enter(request: Request, server: SignInServer, token: string, next: string): Promise<Response> {
  const { token: ours, proxies } = server.settings();
  const address = clientAddress(request.headers, proxies);
  if (!isSecret(token)) await server.throttle.turn(address, request.signal);
  const isOwner = sameSecret(token, ours);
  if (!isOwner && !isSecret(token)) {
    server.throttle.failed(address);
    return goTo(signedOutPath(next, 'wrong-token'));
  }
  // A stranger's guesses write nothing.
  if (!isOwner && !(await isGoodCode(server, token))) return goTo(signedOutPath(next, 'old-link'));
  const { database, now, sessionIdleMs, credentials } = await server.context();
  const secret = await database.writes.run(async (transaction) => {
    transaction.touch('access');
    const maker = isOwner ? OWNER : await spendCode(transaction, token, now());
    if (maker === null) return null;
    const made = await addMadeCredential(transaction, maker, {
      kind: 'session',
      name: LOCAL_ADMIN,
      // Whoever holds the installation's token is its admin; to speak as an agent takes the token itself.
      role: 'admin',
      scope: EVERYTHING,
      now: now(),
      expiresAt: now() + LOCAL_SESSION_MS,
      idleMs: sessionIdleMs,
    });
    const act = actOf(request, principalOf(made.credential), 'sign in', {}, null);
    // what is in the address was a secret a moment ago
    await noteAct(transaction, { ...act, digest: '' }, 'done', now());
    return made.secret;
  });
  if (secret === null) return goTo(signedOutPath(next, 'old-link'));
  await credentials.changed();
  return goTo(next, { 'set-cookie': sessionCookie(secret, isSecure(request)) });
}

/** Looks without spending it. */
async function isGoodCode(server: SignInServer, code: string): Promise<boolean> {
  if (!isSecret(code)) return false;
  const { database, now } = await server.context();
  const { rows } = await database.reader.execute({ sql: SELECT_CODE, args: [secretHash(code)] });
  return rows[0] !== undefined && isLive(credentialFromRow(rows[0]), now());
}

const SELECT_BY_ID = `SELECT ${CREDENTIAL_COLUMNS} FROM credentials WHERE id = ?`;
const SELECT_CODE = `SELECT ${CREDENTIAL_COLUMNS} FROM credentials WHERE hash = ? AND kind = 'code'`;

/** @returns who made the code; null for one that is spent, too old, or none */
async function spendCode(transaction: WriteTransaction, code: string, now: number): Promise<Principal | null> {
  const { rows } = await transaction.execute({ sql: SELECT_CODE, args: [secretHash(code)] });
  const [row] = rows;
  if (row === undefined) return null;
  const credential = credentialFromRow(row);
  if (!isLive(credential, now)) return null;
  await revokeCredentials(transaction, { sql: 'id = ?', args: [credential.id] }, now);
  // the owner has no row, and rows of sign-ins are never removed
  const [maker] = (await transaction.execute({ sql: SELECT_BY_ID, args: [credential.parentId] })).rows;
  return maker === undefined ? OWNER : principalOf(credentialFromRow(maker));
}

/** @param place a path of this server, or an address */
export function goTo(place: string, headers: Record<string, string> = {}): Response {
  const location = place.startsWith('/') ? withBasePath(place) : place;
  return new Response(null, { status: 303, headers: { location, 'cache-control': 'no-store', ...headers } });
}
