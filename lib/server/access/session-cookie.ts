import { BASE_PATH, placedAt } from '@interlude/protocol/base-path.mjs';
import { forwardedOverTls } from './response-headers.mjs';

/**
 * What a browser holds: a random secret that says nothing by itself. Over TLS the name keeps other hosts and plain
 * http from setting it; beneath a path it can't have that name, and only keeps plain http from it.
 *
 * @see RFC 6265bis 4.1.3.2 on `__Host-`
 */
const NAME = 'interlude';
const secureName = (basePath: string) => `${basePath === '' ? '__Host' : '__Secure'}-interlude`;
/** The browser's own limit. The server forgets a sign-in sooner: see `sessionIdleMs`. */
const LIFETIME_SECONDS = 400 * 24 * 60 * 60;

/**
 * The secret a request carries, or null: the first of a name, as in browsers. The secure name counts for more, and over
 * TLS nothing else does: the other can be set by any host of the same domain, and by whoever is on the network.
 */
export function sessionSecret(headers: Headers, basePath = BASE_PATH): string | null {
  const cookies = headers.get('cookie') ?? '';
  return cookieOf(cookies, secureName(basePath)) ?? (forwardedTls(headers) ? null : cookieOf(cookies, NAME));
}

function cookieOf(cookies: string, name: string): string | null {
  for (const pair of cookies.split(';')) {
    const equals = pair.indexOf('=');
    if (equals > 0 && pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim();
  }
  return null;
}

/**
 * Lax, not Strict: a link to a session that a colleague sent must open signed in. Nothing changes state on GET, and
 * every request to the API by cookie has to come from the same origin anyway.
 */
export function sessionCookie(secret: string, secure: boolean, basePath = BASE_PATH): string {
  return cookie(secret, secure, LIFETIME_SECONDS, basePath);
}

export function clearedCookie(secure: boolean, basePath = BASE_PATH): string {
  return cookie('', secure, 0, basePath);
}

function cookie(value: string, secure: boolean, seconds: number, basePath: string): string {
  const name = secure ? secureName(basePath) : NAME;
  return `${name}=${value}; Path=${placedAt('/', basePath)}; HttpOnly; SameSite=Lax; Max-Age=${seconds}${secure ? '; Secure' : ''}`;
}

/**
 * Where a browser that came by a loopback address is to go instead: a name of our own, so that what listens on other
 * ports of this machine is not sent the cookie. Null where it has another address, and where the browser is one that
 * does not know such names.
 */
export function localNameOrigin(
  headers: Pick<Headers, 'get'>,
  { localName, isSecure }: { localName: string | null; isSecure: boolean },
): string | null {
  const [, name, port = ''] = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i.exec(headers.get('host') ?? '') ?? [];
  if (localName === null || name === undefined || isSecure) return null;
  return isSafari(headers.get('user-agent') ?? '') ? null : `http://${localName}${port}`;
}

/** It looks names below `localhost` up, and finds none. */
function isSafari(userAgent: string): boolean {
  return /\bSafari\//.test(userAgent) && !/Chrom(e|ium)\//.test(userAgent);
}

/** Whether the browser reached us over TLS, be it through a proxy. A liar only hardens its own cookie. */
export function isSecure({ headers, url }: Request): boolean {
  return forwardedTls(headers) ?? new URL(url).protocol === 'https:';
}

/** What a proxy says of it; null where there is none, or it says nothing. */
export function forwardedTls(headers: Pick<Headers, 'get'>): boolean | null {
  return forwardedOverTls(headers.get('x-forwarded-proto'));
}
