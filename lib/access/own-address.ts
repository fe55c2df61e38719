import type { AccessSettings } from './access-settings';

/**
 * Where a browser that came by a loopback address is to go instead: a name of our own, so that what listens on other
 * ports of this machine is not sent the cookie. Null for programs, which may not know such names, and where the browser
 * is one that doesn't.
 */
export function ownAddress(request: Request, { localName }: Pick<AccessSettings, 'localName'>): string | null {
  if (localName === null || request.headers.get('sec-fetch-mode') !== 'navigate') return null;
  const host = request.headers.get('host') ?? '';
  const [, name, port = ''] = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i.exec(host) ?? [];
  if (name === undefined || isSecure(request) || isSafari(request.headers.get('user-agent') ?? '')) return null;
  return `http://${localName}${port}`;
}

/** It looks names below `localhost` up, and finds none. */
function isSafari(userAgent: string): boolean {
  return /\bSafari\//.test(userAgent) && !/Chrom(e|ium)\//.test(userAgent);
}

/** Whether the browser reached us over TLS, be it through a proxy. A liar only hardens its own cookie. */
export function isSecure(request: Request): boolean {
  const forwarded = request.headers.get('x-forwarded-proto')?.split(',')[0]?.trim();
  return (forwarded ?? new URL(request.url).protocol.replace(':', '')) === 'https';
}
