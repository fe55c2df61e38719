import { AppError } from '@interlude/protocol/errors';
import { API_BASE, PAGE_HEADER } from '@interlude/protocol/version';
import type { AccessSettings } from './access-settings';

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Refuses unknown `Host` names. A hostile page can point its own name at 127.0.0.1 to count as same-origin (DNS
 * rebinding), but can't send another Host.
 *
 * @throws AppError `misdirected_host`
 */
export function checkHost(request: Request, settings: AccessSettings): void {
  if (isLocalName(request, settings)) return;
  const name = hostName(request);
  if (settings.allowedHosts.some((allowed) => allowed === name || `[${allowed}]` === name)) return;
  // DNS rebinding needs a name, not an address
  if (settings.allowAddresses && isAddress(name)) return;
  throw new AppError(
    'misdirected_host',
    `This server doesn’t accept the host name ${JSON.stringify(name)}. Use http://localhost, or add the name to INTERLUDE_ALLOWED_HOSTS and restart.`,
  );
}

/** True for a loopback name, which always means this machine. */
function isLocalName(request: Request, { localName }: Pick<AccessSettings, 'localName'>): boolean {
  const name = hostName(request);
  return LOOPBACK.includes(name) || name === localName;
}

export function hostOf({ headers, url }: Pick<Request, 'headers' | 'url'>): string {
  return headers.get('host') ?? new URL(url).host;
}

/** Without port and trailing dot, in lower case; IPv6 addresses keep their brackets. */
function hostName(request: Request): string {
  return hostOf(request).trim().toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
}

function isAddress(name: string): boolean {
  return /^\d{1,3}(\.\d{1,3}){3}$/.test(name) || /^\[[0-9a-f:.]+\]$/.test(name);
}

const READS = ['GET', 'HEAD', 'OPTIONS'];

/**
 * Refuses cookie-authenticated requests from another site, with any method: a link, an `<img>` or a page on another
 * port of this host must not act for the operator.
 *
 * On trustworthy origins Sec-Fetch-Site decides. On other origins (plain http on a host other than localhost) the
 * request must carry a value that another origin can't send: our Origin, our pages' header, or, on a read such as a
 * download link, our URL as Referer. Programs use a bearer token instead.
 *
 * @throws AppError `cross_origin`
 */
export function checkSameOrigin(request: Request): void {
  if (isSameOrigin(request)) return;
  throw new AppError(
    'cross_origin',
    'Requests with a sign-in cookie must come from the dashboard’s own pages. From a program, send "Authorization: Bearer <token>" instead.',
  );
}

/**
 * Refuses a form posted by another site. A request with neither Sec-Fetch-Site nor Origin is from a program: every
 * browser sends one with a form.
 *
 * @throws AppError `cross_origin`
 */
export function checkFormOrigin(request: Request): void {
  const { headers } = request;
  if (isSameOrigin(request) || (headers.get('sec-fetch-site') ?? headers.get('origin')) === null) return;
  throw new AppError('cross_origin', 'Another site sent this form. Open Interlude at its own URL and sign in there.');
}

function isSameOrigin(request: Request): boolean {
  const { headers, method } = request;
  const isRead = READS.includes(method);
  const site = headers.get('sec-fetch-site');
  // `none`: typed, or opened from a bookmark
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

/**
 * Classifies the initiator of a request: a `prefetch`; a `person` who typed it or followed a link from a terminal,
 * mail program or bookmark; or a `page`, including our own, which show what agents write.
 *
 * Browsers send Sec-Fetch-Site, through redirects too, on connections they trust: TLS and this machine. Without it, a
 * request to a loopback name comes from a program such as curl or a very old browser; under any other name it may be
 * any browser.
 *
 * @see https://www.w3.org/TR/fetch-metadata/#sec-fetch-site-header
 */
export function requestInitiator(request: Request, settings: AccessSettings): 'prefetch' | 'person' | 'page' {
  const { headers } = request;
  if (isPrefetch(headers)) return 'prefetch';
  const site = headers.get('sec-fetch-site');
  if (site === null) return isLocalName(request, settings) ? 'person' : 'page';
  return site === 'none' && isDocumentRequest(headers) ? 'person' : 'page';
}

/** True if a browser loads a page. Scripts, including Next's router, don't accept HTML. */
export function isNavigation(headers: Headers): boolean {
  return !isPrefetch(headers) && (headers.get('accept') ?? '').includes('text/html');
}

function isPrefetch(headers: Headers): boolean {
  return PREFETCH_HEADERS.some((name) => headers.get(name)?.includes('prefetch'));
}

/** True for a top-level page load, not a frame or subresource. */
export function isDocumentRequest(headers: Headers): boolean {
  const dest = headers.get('sec-fetch-dest') ?? 'document';
  return headers.get('sec-fetch-mode') === 'navigate' && dest === 'document';
}

/** Newest first. */
const PREFETCH_HEADERS = ['sec-purpose', 'purpose', 'x-moz'];

/**
 * A frame sandboxed without `allow-same-origin` has an opaque origin: its requests to its own server are cross-origin,
 * with `Origin: null`. Those without a cookie may be read; their bearer token authorizes them.
 */
function hasOpaqueOrigin({ headers, url }: Request): boolean {
  if (headers.get('origin') !== 'null' || headers.get('cookie') !== null) return false;
  return new URL(url).pathname.startsWith(`${API_BASE}/`);
}

const ALLOWED = {
  'access-control-allow-origin': '*',
  vary: 'origin',
};

const PREFLIGHT = {
  ...ALLOWED,
  'access-control-allow-methods': 'GET, POST, PUT',
  'access-control-allow-headers': 'authorization, content-type, if-none-match, last-event-id, x-interlude-page',
  'access-control-max-age': '600',
};

/** The response to a CORS preflight; null for other requests. Needs no authentication: it reveals nothing. */
export function preflightResponse(request: Request): Response | null {
  const isPreflight = request.method === 'OPTIONS' && request.headers.has('access-control-request-method');
  return isPreflight && hasOpaqueOrigin(request) ? new Response(null, { status: 204, headers: PREFLIGHT }) : null;
}

/** Lets an opaque origin read the response, including errors. */
export function allowOpaqueOrigin<Answer extends Response>(request: Request, answer: Answer): Answer {
  if (!hasOpaqueOrigin(request)) return answer;
  for (const [name, value] of Object.entries(ALLOWED)) answer.headers.append(name, value);
  answer.headers.set('access-control-expose-headers', 'content-disposition');
  return answer;
}
