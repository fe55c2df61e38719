import { BASE_PATH, prependBasePath } from '@interlude/protocol/base-path.mjs';
import { saysSecure } from './own-address';

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
export function sessionOf(headers: Headers, basePath = BASE_PATH): string | null {
  const cookies = headers.get('cookie') ?? '';
  return cookieOf(cookies, secureName(basePath)) ?? (saysSecure(headers) ? null : cookieOf(cookies, NAME));
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
  return `${name}=${value}; Path=${prependBasePath('/', basePath)}; HttpOnly; SameSite=Lax; Max-Age=${seconds}${secure ? '; Secure' : ''}`;
}
