import type { AccessSettings } from './access-settings';
import { isLocalName } from './host';

/**
 * Who had a browser open an address of ours: `ahead` nobody yet, it only looks whether they might; `person` somebody who
 * typed it, or opened it from a terminal, a mail program or their bookmarks; `elsewhere` a page, whose own links and
 * forms count, too: what agents write stands on ours.
 *
 * Browsers say so in Sec-Fetch-Site, through redirects as well, wherever they trust the connection: over TLS, and on this
 * machine. Without it, whoever comes to this machine by one of its own names is a program, such as curl, or a browser
 * that is years old; by any other name it may be any browser.
 *
 * @see https://www.w3.org/TR/fetch-metadata/#sec-fetch-site-header
 */
export function begunBy(request: Request, settings: AccessSettings): 'ahead' | 'person' | 'elsewhere' {
  const { headers } = request;
  if (isPrefetch(headers)) return 'ahead';
  const site = headers.get('sec-fetch-site');
  if (site === null) return isLocalName(request, settings) ? 'person' : 'elsewhere';
  return site === 'none' && isForPage(headers) ? 'person' : 'elsewhere';
}

/** Returns true if a browser loads a page. A script's requests, those of Next's router included, accept no HTML. */
export function isNavigation(headers: Headers): boolean {
  return !isPrefetch(headers) && (headers.get('accept') ?? '').includes('text/html');
}

function isPrefetch(headers: Headers): boolean {
  return AHEAD.some((name) => headers.get(name)?.includes('prefetch'));
}

/** Whether a browser asks for a page to show in a tab, and not for a frame, an image or the like. */
export function isForPage(headers: Headers): boolean {
  const dest = headers.get('sec-fetch-dest') ?? 'document';
  return headers.get('sec-fetch-mode') === 'navigate' && dest === 'document';
}

/** As browsers call it, the older ones last. */
const AHEAD = ['sec-purpose', 'purpose', 'x-moz'];
