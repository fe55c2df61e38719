import { AppError } from '@interlude/protocol/errors';
import { PAGE_HEADER } from '@interlude/protocol/page-header';
import { API_BASE } from '@interlude/protocol/version';
import type { AccessSettings } from './access-settings';

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Refuses a request that was sent to a name this server does not go by. A hostile page can point its own name at
 * 127.0.0.1 and then counts as same-origin (DNS rebinding), but it can't send any Host except that name.
 *
 * @throws AppError `misdirected_host`
 */
export function checkHost(request: Request, settings: AccessSettings): void {
  if (isLocalName(request, settings)) return;
  const name = hostName(request);
  if (settings.allowedHosts.some((allowed) => allowed === name || `[${allowed}]` === name)) return;
  // An address can't be rebound: only names are looked up.
  if (settings.allowAddresses && isAddress(name)) return;
  throw new AppError(
    'misdirected_host',
    `This server does not answer under the name ${JSON.stringify(name)}. Use http://localhost, or add the name to INTERLUDE_ALLOWED_HOSTS and start again.`,
  );
}

/** Whether it was sent to a name of this machine, which leads nobody else here. */
export function isLocalName(request: Request, { localName }: Pick<AccessSettings, 'localName'>): boolean {
  const name = hostName(request);
  return LOOPBACK.includes(name) || name === localName;
}

/** Where a request was sent to, with its port. */
export function hostOf({ headers, url }: Pick<Request, 'headers' | 'url'>): string {
  return headers.get('host') ?? new URL(url).host;
}

/** The same without its port, in lower case and without a trailing dot; an IPv6 address keeps its brackets. */
function hostName(request: Request): string {
  return hostOf(request).trim().toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
}

function isAddress(name: string): boolean {
  return /^\d{1,3}(\.\d{1,3}){3}$/.test(name) || /^\[[0-9a-f:.]+\]$/.test(name);
}

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
  if (isSameOrigin(request)) return;
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
export function checkFormOrigin(request: Request): void {
  const { headers } = request;
  if (isSameOrigin(request) || (headers.get('sec-fetch-site') ?? headers.get('origin')) === null) return;
  throw new AppError(
    'cross_origin',
    'This form was sent by a page of another site. Open Interlude by its own address, and sign in there.',
  );
}

function isSameOrigin(request: Request): boolean {
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
export function requestInitiator(request: Request, settings: AccessSettings): 'ahead' | 'person' | 'elsewhere' {
  const { headers } = request;
  if (isPrefetch(headers)) return 'ahead';
  const site = headers.get('sec-fetch-site');
  if (site === null) return isLocalName(request, settings) ? 'person' : 'elsewhere';
  return site === 'none' && isDocumentRequest(headers) ? 'person' : 'elsewhere';
}

/** Returns true if a browser loads a page. A script's requests, those of Next's router included, accept no HTML. */
export function isNavigation(headers: Headers): boolean {
  return !isPrefetch(headers) && (headers.get('accept') ?? '').includes('text/html');
}

function isPrefetch(headers: Headers): boolean {
  return PREFETCH_HEADERS.some((name) => headers.get(name)?.includes('prefetch'));
}

/** Whether a browser asks for a page to show in a tab, and not for a frame, an image or the like. */
export function isDocumentRequest(headers: Headers): boolean {
  const dest = headers.get('sec-fetch-dest') ?? 'document';
  return headers.get('sec-fetch-mode') === 'navigate' && dest === 'document';
}

/** As browsers call it, the older ones last. */
const PREFETCH_HEADERS = ['sec-purpose', 'purpose', 'x-moz'];

/**
 * A frame that is sandboxed without `allow-same-origin` has no origin: its requests to its own server count as ones from
 * elsewhere, and say `Origin: null`. They may be read where they carry no cookie: what they are allowed, their bearer
 * token says.
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

/** What a browser asks beforehand; null if this is something else. It tells nothing, so that nobody needs to be known. */
export function preflightResponse(request: Request): Response | null {
  const isPreflight = request.method === 'OPTIONS' && request.headers.has('access-control-request-method');
  return isPreflight && hasOpaqueOrigin(request) ? new Response(null, { status: 204, headers: PREFLIGHT }) : null;
}

/** Lets such a frame read the answer, be it a refusal. */
export function allowOpaqueOrigin<Answer extends Response>(request: Request, answer: Answer): Answer {
  if (!hasOpaqueOrigin(request)) return answer;
  for (const [name, value] of Object.entries(ALLOWED)) answer.headers.append(name, value);
  answer.headers.set('access-control-expose-headers', 'content-disposition');
  return answer;
}
