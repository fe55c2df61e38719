import { AppError } from '@/lib/protocol/errors';
import type { AccessSettings } from './access-settings';
import { sameSecret } from './digest';
import { checkHost } from './host';
import { checkSameOrigin } from './same-origin';
import { isLiveSession, sessionOf } from './session-cookie';

/** `program` came with the bearer token, `operator` with the cookie of a signed-in browser. */
export type Caller = 'program' | 'operator';

/**
 * Decides who sent a request, before any of its body is read. Runs for every route that is not open.
 *
 * @throws AppError `misdirected_host`, `unauthenticated`, `cross_origin`
 */
export async function authenticate(request: Request, settings: AccessSettings): Promise<Caller> {
  checkHost(request, settings);
  const authorization = request.headers.get('authorization');
  // A wrong bearer token is never saved by a good cookie: the sender meant the token.
  if (authorization !== null) {
    const token = /^Bearer +(\S+) *$/i.exec(authorization)?.[1];
    if (token !== undefined && sameSecret(token, settings.token)) return 'program';
    throw unauthenticated('The bearer token of this request is not this server’s token.');
  }
  if (!(await isSignedIn(request, settings))) throw unauthenticated('This request carries no sign-in.');
  checkSameOrigin(request);
  return 'operator';
}

/**
 * Like `authenticate`, for routes that only programs use: speaking for an agent, and listening on its behalf. The
 * operator's cookie opens none of them, whoever made a browser send it.
 *
 * @throws AppError `misdirected_host`, `unauthenticated`
 */
export async function authenticateProgram(request: Request, settings: AccessSettings): Promise<void> {
  checkHost(request, settings);
  if (request.headers.get('authorization') === null && (await isSignedIn(request, settings))) {
    throw unauthenticated('This is for runners, and a sign-in by cookie does not open it.');
  }
  await authenticate(request, settings);
}

/** Whether the request carries the cookie of a live session. For pages, which redirect instead of refusing. */
export async function isSignedIn(request: Request, settings: AccessSettings): Promise<boolean> {
  const session = sessionOf(request.headers);
  return session !== null && (await isLiveSession(session, settings.token, settings.now()));
}

function unauthenticated(what: string): AppError {
  return new AppError(
    'unauthenticated',
    `${what} Send "Authorization: Bearer <token>", or open the sign-in link that "npm start" prints; the token is in the data directory's "token" file unless INTERLUDE_TOKEN sets it.`,
    { headers: { 'www-authenticate': 'Bearer realm="interlude"' } },
  );
}
