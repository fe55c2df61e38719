import { AppError } from '@interlude/protocol/errors';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import {
  AuthorizationResponseError,
  ClientError,
  ResponseBodyError,
  WWWAuthenticateChallengeError,
} from 'openid-client';

/** What the library calls an answer that is not the one to our question: forged, mixed up, or signed by somebody else. */
const NOT_OURS = [
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_UNSUPPORTED_OPERATION',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
  'OAUTH_KEY_SELECTION_FAILED',
];

/** Codes with which a provider says of itself that it is not well. */
const UNWELL = ['server_error', 'temporarily_unavailable'];

/**
 * Why a sign-in that came back from the provider failed, in words for whoever wanted to come in.
 *
 * @param publicUrl where to start again
 */
export function signInRefusal(error: unknown, issuer: string, publicUrl: string): AppError {
  if (error instanceof AppError) return error;
  const again = `Start again at ${publicUrl}.`;
  if (error instanceof AuthorizationResponseError) return refusedByProvider(error, issuer, again);
  if (error instanceof WWWAuthenticateChallengeError) return wrongSecret(error);
  if (error instanceof ResponseBodyError) {
    if (error.error === 'invalid_client' || error.error === 'unauthorized_client') return wrongSecret(error);
    if (error.error !== 'invalid_grant') return providerAway(issuer, error);
    const what = 'The identity provider does not take this sign-in: it was used already, is too old, or is another’s.';
    return new AppError('malformed', `${what} ${again}`, { cause: error });
  }
  if (error instanceof ClientError && NOT_OURS.includes(error.code ?? '')) {
    const why = error.cause instanceof Error ? error.cause.message : error.message;
    return new AppError('malformed', `This is no answer to a sign-in that was begun here (${why}). ${again}`, {
      cause: error,
    });
  }
  return providerAway(issuer, error);
}

/** The provider does not answer, or answers what can't be used. The cause is for the server's own log. */
export function providerAway(issuer: string, cause: unknown): AppError {
  serverLog('error', `the identity provider ${issuer} does not answer as it should: ${causesOf(cause)}`);
  return new AppError(
    'unavailable',
    `The identity provider ${issuer} can’t be reached, or does not answer as it should. Try again in a minute. If that does not help, tell whoever runs Interlude: its log has the cause.`,
    { cause, headers: { 'retry-after': '30' } },
  );
}

function refusedByProvider(error: AuthorizationResponseError, issuer: string, again: string): AppError {
  // Whoever sent the browser here wrote the code: only what looks like one is repeated.
  const code = /^[a-z_]{1,60}$/.test(error.error) ? error.error : 'error';
  if (UNWELL.includes(code)) return providerAway(issuer, error);
  if (code !== 'access_denied') {
    serverLog(
      'error',
      `the identity provider ${issuer} refuses a sign-in: ${code} ${inOneLine(error.error_description ?? '')}`,
    );
  }
  const why =
    code === 'access_denied'
      ? 'you or the provider declined. If you did not, ask whoever runs the provider to let you use Interlude'
      : 'if it goes on, tell whoever runs Interlude';
  return new AppError('forbidden', `The identity provider did not sign you in (${code}): ${why}. ${again}`, {
    cause: error,
  });
}

function wrongSecret(cause: unknown): AppError {
  serverLog(
    'error',
    `the identity provider does not take this server’s client id and secret: ${causesOf(cause)}. Check INTERLUDE_OIDC_CLIENT_ID, INTERLUDE_OIDC_CLIENT_SECRET and INTERLUDE_OIDC_CLIENT_AUTH.`,
  );
  return new AppError(
    'unavailable',
    'The identity provider does not take this server’s client id and secret. Whoever runs Interlude has to set INTERLUDE_OIDC_CLIENT_ID and INTERLUDE_OIDC_CLIENT_SECRET right, or INTERLUDE_OIDC_CLIENT_AUTH to how the provider wants them.',
    { cause },
  );
}

/** An error and what it came from, in one line. */
function causesOf(error: unknown): string {
  const messages: string[] = [];
  for (let at = error; at instanceof Error && messages.length < 4; at = at.cause) {
    messages.push(at instanceof ResponseBodyError ? `${at.error} ${at.error_description ?? ''}`.trim() : at.message);
  }
  return inOneLine(messages.join(', '));
}

/** What others wrote, so that it makes no line of its own in the log. */
function inOneLine(text: string): string {
  return text.replace(/[\s\p{C}]+/gu, ' ').slice(0, 500);
}
