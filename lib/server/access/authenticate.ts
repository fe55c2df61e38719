import { AppError } from '@interlude/protocol/errors';
import { PAGE_HEADER, PRINCIPAL_HEADER, USED_PAGE } from '@interlude/protocol/version';
import type { AccessSettings } from './access-settings';
import { clientAddress } from './client-address';
import type { CredentialCache } from './credential-cache';
import type { LoginThrottle } from './login-throttle';
import { MONITOR, OWNER, type Principal, TIMER } from './principal';
import { checkHost, checkSameOrigin, isNavigation } from './request-origin';
import { isSecret, sameSecret } from './secret';
import { sessionSecret } from './session-cookie';

export interface Authenticator {
  settings(): AccessSettings;
  /** Opens the database on first use. */
  credentials(): Promise<CredentialCache>;
  throttle: LoginThrottle;
}

/**
 * Identifies the sender before any body is read. Runs for every route that is not open.
 *
 * Ordering: an Authorization header takes precedence, so a valid cookie never makes up for a wrong token. The owner's
 * token needs no database.
 *
 * @throws AppError `misdirected_host`, `unauthenticated`, `cross_origin`, `other_principal`, `unavailable`
 */
export async function authenticate(request: Request, authenticator: Authenticator): Promise<Principal> {
  const principal = await findPrincipal(request, authenticator);
  const composedBy = request.headers.get(PRINCIPAL_HEADER);
  if (composedBy === null || composedBy === principal.id) return principal;
  throw new AppError(
    'other_principal',
    'Another person composed this request, so nothing was done. Reload the page, then send it again.',
  );
}

async function findPrincipal(request: Request, authenticator: Authenticator): Promise<Principal> {
  const settings = authenticator.settings();
  checkHost(request, settings);
  const authorization = request.headers.get('authorization');
  if (authorization !== null) {
    const token = /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
    const isGenerated = token !== undefined && isSecret(token);
    const address = clientAddress(request.headers, settings.proxies);
    if (!isGenerated) await authenticator.throttle.admit(address, request.signal);
    if (token !== undefined && sameSecret(token, settings.token)) return OWNER;
    if (token !== undefined && sameSecret(token, settings.cronSecret ?? '')) return TIMER;
    if (token !== undefined && sameSecret(token, settings.metricsToken ?? '')) return MONITOR;
    const principal = isGenerated ? await (await authenticator.credentials()).find(token) : null;
    // a session secret is not a bearer token
    if (principal !== null && !token?.startsWith('ils_')) return principal;
    if (!isGenerated) authenticator.throttle.recordFailure(address);
    throw unauthenticated('The bearer token is invalid, revoked or expired.');
  }
  const isUse = request.headers.get(PAGE_HEADER) === USED_PAGE;
  const principal = await sessionPrincipal(request.headers, authenticator, { isUse });
  if (principal === null) throw unauthenticated('This request has no credential.');
  checkSameOrigin(request);
  return principal;
}

/**
 * Like `authenticate`, for routes that act for an agent. Rejects cookies, so no page can make a browser call such a
 * route.
 */
export async function authenticateProgram(request: Request, authenticator: Authenticator): Promise<Principal> {
  checkHost(request, authenticator.settings());
  if (
    request.headers.get('authorization') === null &&
    (await sessionPrincipal(request.headers, authenticator)) !== null
  ) {
    throw unauthenticated('This route is for runners and accepts no sign-in cookie.');
  }
  return authenticate(request, authenticator);
}

/**
 * Principal of the request's session cookie, or null if it is missing, revoked or expired. Pages redirect on null
 * instead of refusing.
 *
 * @param isUse counts as use of the sign-in; by default true for a navigation, false for a prefetch
 */
export async function sessionPrincipal(
  headers: Headers,
  authenticator: Authenticator,
  { isUse = isNavigation(headers) } = {},
): Promise<Principal | null> {
  const secret = sessionSecret(headers);
  if (secret === null || !secret.startsWith('ils_') || !isSecret(secret)) return null;
  return (await authenticator.credentials()).find(secret, { isUse });
}

/** The error for a credential that ended while the request was in progress. */
export function credentialEnded(): AppError {
  return unauthenticated('The credential of this request was revoked or has expired.');
}

function unauthenticated(problem: string): AppError {
  return new AppError(
    'unauthenticated',
    `${problem} Send "Authorization: Bearer <token>", or sign in: "interlude sign-in" prints a link for this machine’s dashboard.`,
    { headers: { 'www-authenticate': 'Bearer realm="interlude"' } },
  );
}
