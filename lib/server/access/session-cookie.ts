import { BASE_PATH, prependBasePath } from '@interlude/protocol/base-path.mjs';
import { forwardedOverTls } from './response-headers.mjs';

/**
 * The session cookie holds an opaque random secret. Over TLS its prefix keeps other hosts and plain http from setting
 * it. Under a base path `__Host-` is impossible, and `__Secure-` only excludes plain http.
 *
 * @see RFC 6265bis 4.1.3.2 on `__Host-`
 */
const NAME = 'interlude';
const secureName = (basePath: string) => `${basePath === '' ? '__Host' : '__Secure'}-interlude`;
/** Maximum that browsers allow. The server expires a sign-in sooner (`sessionIdleMs`). */
const LIFETIME_SECONDS = 400 * 24 * 60 * 60;

/**
 * The session secret in a request, or null. The secure name takes precedence. Over TLS the plain name is ignored,
 * because any host of the same domain, or a network attacker, can set that cookie.
 */
export function sessionSecret(headers: Headers, basePath = BASE_PATH): string | null {
  const cookies = cookiesIn(headers);
  return cookies.get(secureName(basePath)) ?? (forwardedTls(headers) ? null : (cookies.get(NAME) ?? null));
}

/** Cookies by name. The first of several duplicates wins, as in browsers. */
export function cookiesIn(headers: Pick<Headers, 'get'>): Map<string, string> {
  const found = new Map<string, string>();
  for (const pair of (headers.get('cookie') ?? '').split(';')) {
    const equals = pair.indexOf('=');
    const name = pair.slice(0, Math.max(equals, 0)).trim();
    if (name !== '' && !found.has(name)) found.set(name, pair.slice(equals + 1).trim());
  }
  return found;
}

/**
 * Lax, not Strict, so a link to a session opens signed in. No GET changes state, and API requests by cookie must be
 * same-origin anyway.
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

/**
 * Redirect target for a browser on a loopback address: our own host name, so servers on other ports don't receive the
 * cookie. Null for other addresses, and for browsers that don't resolve such names.
 */
export function localNameOrigin(
  headers: Pick<Headers, 'get'>,
  { localName, isSecure }: { localName: string | null; isSecure: boolean },
): string | null {
  const [, name, port = ''] = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i.exec(headers.get('host') ?? '') ?? [];
  if (localName === null || name === undefined || isSecure) return null;
  return isSafari(headers.get('user-agent') ?? '') ? null : `http://${localName}${port}`;
}

/** Safari looks up names below `localhost` in DNS and fails. */
function isSafari(userAgent: string): boolean {
  return /\bSafari\//.test(userAgent) && !/Chrom(e|ium)\//.test(userAgent);
}

/** True if the browser used TLS, also through a proxy. A forged header only hardens the sender's own cookie. */
export function isSecure({ headers, url }: Request): boolean {
  return forwardedTls(headers) ?? new URL(url).protocol === 'https:';
}

/** Scheme that the proxy reports; null without a proxy. */
export function forwardedTls(headers: Pick<Headers, 'get'>): boolean | null {
  return forwardedOverTls(headers.get('x-forwarded-proto'));
}
