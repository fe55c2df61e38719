import { forwardedOverTls } from './response-headers.mjs';

/**
 * Where a browser that came by a loopback address is to go instead: a name of our own, so that what listens on other
 * ports of this machine is not sent the cookie. Null where it has another address, and where the browser is one that
 * does not know such names.
 */
export function ownAddress(
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
  return saysSecure(headers) ?? new URL(url).protocol === 'https:';
}

/** What a proxy says of it; null where there is none, or it says nothing. */
export function saysSecure(headers: Pick<Headers, 'get'>): boolean | null {
  return forwardedOverTls(headers.get('x-forwarded-proto'));
}
