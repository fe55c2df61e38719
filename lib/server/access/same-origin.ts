import { AppError } from '@interlude/protocol/errors';
import { PAGE_HEADER } from '@interlude/protocol/version';
import { hostOf } from './host';

const READS = ['GET', 'HEAD', 'OPTIONS'];

/**
 * Refuses a request that a browser sent with the operator's cookie on behalf of another site, whatever its method: a
 * link, an `<img>` or a page on another port of this host may ask for nothing in the operator's name.
 *
 * On trustworthy origins browsers say where a request comes from in Sec-Fetch-Site, and then that decides. Elsewhere
 * (plain http to a host other than localhost) the proof is something another origin can't send: our Origin, the header
 * of our own pages, or, on a read such as a download link, our own address as Referer. A request without proof is
 * refused: programs have the bearer token.
 *
 * @throws AppError `cross_origin`
 */
export function checkSameOrigin(request: Request): void {
  if (isOwn(request)) return;
  throw new AppError(
    'cross_origin',
    'A request that is signed in by cookie must come from the dashboard’s own pages. From a program, send "Authorization: Bearer <token>" instead.',
  );
}

/**
 * Refuses a form that a page of another site sent. Whoever proves nothing is a program: every browser says of a form where
 * it comes from.
 *
 * @throws AppError `cross_origin`
 */
export function checkOwnForm(request: Request): void {
  const { headers } = request;
  if (isOwn(request) || (headers.get('sec-fetch-site') ?? headers.get('origin')) === null) return;
  throw new AppError(
    'cross_origin',
    'This form was sent by a page of another site. Open Interlude by its own address, and sign in there.',
  );
}

function isOwn(request: Request): boolean {
  const { headers, method } = request;
  const isRead = READS.includes(method);
  const site = headers.get('sec-fetch-site');
  // `none`: the person typed it, or opened a bookmark.
  if (site !== null) return site === 'same-origin' || (site === 'none' && isRead);
  const host = hostOf(request).toLowerCase();
  const origin = headers.get('origin');
  if (origin !== null) return hostIn(origin) === host;
  if (headers.get(PAGE_HEADER) !== null) return true;
  const referrer = headers.get('referer');
  return isRead && referrer !== null && hostIn(referrer) === host;
}

function hostIn(address: string): string | null {
  try {
    return new URL(address).host;
  } catch {
    return null;
  }
}
