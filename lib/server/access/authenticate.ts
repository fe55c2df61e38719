import { AppError } from '@interlude/protocol/errors';
import { PAGE_HEADER, PRINCIPAL_HEADER, USED_PAGE } from '@interlude/protocol/version';
import type { AccessSettings } from './access-settings';
import { isNavigation } from './begun-by';
import { clientAddress } from './client-address';
import type { CredentialBook } from './credential-book';
import { sameSecret } from './digest';
import { checkHost } from './host';
import type { LoginThrottle } from './login-throttle';
import { MONITOR, OWNER, type Principal, TIMER } from './principal';
import { checkSameOrigin } from './same-origin';
import { isSecret } from './secret';
import { sessionOf } from './session-cookie';

/** What is asked who somebody is. */
export interface Doorkeeper {
  settings(): AccessSettings;
  /** Opens the database if that is still to be done. */
  credentials(): Promise<CredentialBook>;
  throttle: LoginThrottle;
}

/**
 * Decides who sent a request, before any of its body is read. Runs for every route that is not open.
 *
 * Ordering: an Authorization header decides alone; a wrong one is never saved by a good cookie, because the sender
 * meant it. The owner's token needs no database.
 *
 * @throws AppError `misdirected_host`, `unauthenticated`, `cross_origin`, `other_principal`, `unavailable`
 */
export async function authenticate(request: Request, door: Doorkeeper): Promise<Principal> {
  const principal = await findPrincipal(request, door);
  const composedBy = request.headers.get(PRINCIPAL_HEADER);
  if (composedBy === null || composedBy === principal.id) return principal;
  throw new AppError(
    'other_principal',
    'Another person composed this request, so nothing was done. Reload the page, then send it again.',
  );
}

async function findPrincipal(request: Request, door: Doorkeeper): Promise<Principal> {
  const settings = door.settings();
  checkHost(request, settings);
  const authorization = request.headers.get('authorization');
  if (authorization !== null) {
    const token = /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
    const isOurs = token !== undefined && isSecret(token);
    const address = clientAddress(request.headers, settings.proxies);
    if (!isOurs) await door.throttle.turn(address, request.signal);
    if (token !== undefined && sameSecret(token, settings.token)) return OWNER;
    if (token !== undefined && sameSecret(token, settings.cronSecret ?? '')) return TIMER;
    if (token !== undefined && sameSecret(token, settings.metricsToken ?? '')) return MONITOR;
    const principal = isOurs ? await (await door.credentials()).find(token) : null;
    // a cookie's value is no bearer token
    if (principal !== null && !token?.startsWith('ils_')) return principal;
    if (!isOurs) door.throttle.failed(address);
    throw unauthenticated('The bearer token of this request is not known here: it is wrong, revoked or has expired.');
  }
  const isUse = request.headers.get(PAGE_HEADER) === USED_PAGE;
  const principal = await signedIn(request.headers, door, { isUse });
  if (principal === null) throw unauthenticated('This request carries no sign-in.');
  checkSameOrigin(request);
  return principal;
}

/**
 * Like `authenticate`, for what only programs do: speaking for an agent, and listening on its behalf. A sign-in by
 * cookie opens none of it, whoever made a browser send it.
 */
export async function authenticateProgram(request: Request, door: Doorkeeper): Promise<Principal> {
  checkHost(request, door.settings());
  if (request.headers.get('authorization') === null && (await signedIn(request.headers, door)) !== null) {
    throw unauthenticated('This is for runners, and a sign-in by cookie does not open it.');
  }
  return authenticate(request, door);
}

/**
 * Whose live sign-in the cookie of a request is, or null. For pages, which redirect instead of refusing.
 *
 * @param isUse by default true for a navigation, false for a page that Next's router prefetches
 */
export async function signedIn(
  headers: Headers,
  door: Doorkeeper,
  { isUse = isNavigation(headers) } = {},
): Promise<Principal | null> {
  const secret = sessionOf(headers);
  if (secret === null || !secret.startsWith('ils_') || !isSecret(secret)) return null;
  return (await door.credentials()).find(secret, { isUse });
}

/** The credential ended while the request was on its way. */
export function overMeanwhile(): AppError {
  return unauthenticated('The credential of this request was revoked or has expired.');
}

function unauthenticated(what: string): AppError {
  return new AppError(
    'unauthenticated',
    `${what} Send "Authorization: Bearer <token>", or sign in: "interlude sign-in" prints a link for this machine’s dashboard.`,
    { headers: { 'www-authenticate': 'Bearer realm="interlude"' } },
  );
}
