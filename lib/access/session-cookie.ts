import { keyedDigest, sameSecret } from './digest';

/**
 * What the operator's browser holds: `<expires at>.<keyed digest>`. It is derived from the token and does not contain
 * it, so a stolen cookie opens the dashboard until it expires but is no bearer token; a new token ends every session.
 */
const COOKIE_NAME = 'interlude';
const LIFETIME_SECONDS = 30 * 24 * 60 * 60;

export async function makeSession(token: string, now: number): Promise<string> {
  const expiresAt = now + LIFETIME_SECONDS * 1000;
  return `${expiresAt}.${await digestOf(token, expiresAt)}`;
}

export async function isLiveSession(session: string, token: string, now: number): Promise<boolean> {
  const [expires = '', digest = '', ...rest] = session.split('.');
  if (rest.length > 0 || !/^\d{1,16}$/.test(expires)) return false;
  const expiresAt = Number(expires);
  if (expiresAt <= now) return false;
  return sameSecret(digest, await digestOf(token, expiresAt));
}

function digestOf(token: string, expiresAt: number): Promise<string> {
  return keyedDigest(token, `interlude operator session until ${expiresAt}`);
}

/** The session a request carries, or null. The first cookie of the name counts, as in every browser's order. */
export function sessionOf(headers: Headers): string | null {
  for (const pair of (headers.get('cookie') ?? '').split(';')) {
    const equals = pair.indexOf('=');
    if (equals > 0 && pair.slice(0, equals).trim() === COOKIE_NAME) return pair.slice(equals + 1).trim();
  }
  return null;
}

/**
 * Lax, not Strict: a link to a session that a colleague sent must open signed in. Nothing changes state on GET, and
 * every request to the API by cookie has to come from the same origin anyway.
 */
export function sessionCookie(session: string, secure: boolean): string {
  return `${COOKIE_NAME}=${session}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${LIFETIME_SECONDS}${secure ? '; Secure' : ''}`;
}

export function clearedCookie(secure: boolean): string {
  return `${COOKIE_NAME}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0${secure ? '; Secure' : ''}`;
}
