import { abortableFetch } from '@interlude/protocol/abortable-fetch';
import { AppError } from '@interlude/protocol/errors';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import {
  AuthorizationResponseError,
  allowInsecureRequests,
  type ClientAuth,
  ClientError,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  type CustomFetch,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  ResponseBodyError,
  WWWAuthenticateChallengeError,
} from 'openid-client';
import { TtlCache } from '../ttl-cache';
import { isLoopback, type OidcSettings } from './oidc-settings';

/** Short, because a person is waiting. */
const TIMEOUT_SECONDS = 5;

/** Lifetime of discovered metadata during a sign-in. */
const METADATA_MS = 60 * 60 * 1000;

/**
 * Discovers the identity provider's configuration when a person signs in, so the server can start while the provider is
 * down. In a long-lived process, concurrent requests share a discovery. On other hosts they don't, because cancelling a
 * request also cancels its discovery.
 *
 * Failure: while the provider is unavailable, each attempt fails and starts a new discovery.
 */
export class OidcProvider {
  readonly #settings: OidcSettings;
  readonly #now: () => number;
  readonly #discovered: TtlCache<Configuration>;

  constructor(settings: OidcSettings, now: () => number, sharesDiscovery: boolean) {
    this.#settings = settings;
    this.#now = now;
    this.#discovered = new TtlCache(sharesDiscovery);
  }

  /**
   * Configuration discovered within the last `maxAgeMs`.
   *
   * @throws AppError `unavailable`
   */
  configuration(maxAgeMs = METADATA_MS): Promise<Configuration> {
    return this.#discovered.get(
      this.#now,
      () => this.#discover(),
      () => maxAgeMs,
    );
  }

  async #discover(): Promise<Configuration> {
    const { issuer, clientId, clientSecret, clientAuth } = this.#settings;
    const server = new URL(issuer);
    let configuration: Configuration;
    try {
      configuration = await discovery(server, clientId, {}, authBy(clientAuth, clientSecret), {
        timeout: TIMEOUT_SECONDS,
        [customFetch]: abortableFetch as CustomFetch,
        execute: [enableNonRepudiationChecks, ...(isLoopback(server) ? [allowInsecureRequests] : [])],
      });
    } catch (cause) {
      throw providerUnavailable(issuer, cause);
    }
    const reported = configuration.serverMetadata().issuer;
    // for some providers, the library accepts another issuer, which would admit people from any tenant
    if (!URL.canParse(reported) || new URL(reported).href !== server.href) {
      throw new AppError(
        'unavailable',
        `The identity provider reports the issuer ${JSON.stringify(reported)}. An administrator must set INTERLUDE_OIDC_ISSUER to the issuer of your tenant.`,
      );
    }
    return configuration;
  }
}

/** Basic, unless the provider only supports post. Basic is also the default of a provider that lists no method. */
function authBy(how: OidcSettings['clientAuth'], secret: string): ClientAuth {
  const basic = ClientSecretBasic(secret);
  const post = ClientSecretPost(secret);
  return (server, client, body, headers) => {
    const supported = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const isBasic = how === null ? supported.includes('client_secret_basic') : how === 'basic';
    (isBasic ? basic : post)(server, client, body, headers);
  };
}

/** The library's codes for a response that doesn't match the request: forged, mixed up or signed by another party. */
const MISMATCHES = [
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_UNSUPPORTED_OPERATION',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
  'OAUTH_KEY_SELECTION_FAILED',
];

/** Error codes with which a provider reports its own failure. */
const PROVIDER_FAULTS = ['server_error', 'temporarily_unavailable'];

/**
 * Translates a failed callback into an error for the person.
 *
 * @param publicUrl URL at which the person can start again
 */
export function signInRefusal(error: unknown, issuer: string, publicUrl: string): AppError {
  if (error instanceof AppError) return error;
  const again = `Start again at ${publicUrl}.`;
  if (error instanceof AuthorizationResponseError) return refusedByProvider(error, issuer, again);
  if (error instanceof WWWAuthenticateChallengeError) return clientRejected(error);
  if (error instanceof ResponseBodyError) {
    if (error.error === 'invalid_client' || error.error === 'unauthorized_client') return clientRejected(error);
    if (error.error !== 'invalid_grant') return providerUnavailable(issuer, error);
    const problem =
      'The identity provider rejected this sign-in: it was already used, has expired, or belongs to another client.';
    return new AppError('malformed', `${problem} ${again}`, { cause: error });
  }
  if (error instanceof ClientError && MISMATCHES.includes(error.code ?? '')) {
    const why = error.cause instanceof Error ? error.cause.message : error.message;
    return new AppError('malformed', `This response doesn’t match a sign-in started here (${why}). ${again}`, {
      cause: error,
    });
  }
  return providerUnavailable(issuer, error);
}

/** The error for a provider that doesn't respond, or whose response is unusable. Only the log contains the cause. */
export function providerUnavailable(issuer: string, cause: unknown): AppError {
  serverLog('error', `The identity provider ${issuer} failed: ${causesOf(cause)}`);
  return new AppError(
    'unavailable',
    `The identity provider ${issuer} is unreachable or sent an invalid response. Try again in a minute. If the problem persists, ask an administrator to check Interlude’s log.`,
    { cause, headers: { 'retry-after': '30' } },
  );
}

function refusedByProvider(error: AuthorizationResponseError, issuer: string, again: string): AppError {
  // the code may be forged: quote it only if it looks like one
  const code = /^[a-z_]{1,60}$/.test(error.error) ? error.error : 'error';
  if (PROVIDER_FAULTS.includes(code)) return providerUnavailable(issuer, error);
  if (code !== 'access_denied') {
    serverLog(
      'error',
      `The identity provider ${issuer} refused a sign-in: ${code} ${onOneLine(error.error_description ?? '')}`,
    );
  }
  const why =
    code === 'access_denied'
      ? 'you or the provider declined. If you didn’t, ask the provider’s administrator for access to Interlude'
      : 'if the problem persists, tell an administrator of Interlude';
  return new AppError('forbidden', `The identity provider did not sign you in (${code}): ${why}. ${again}`, {
    cause: error,
  });
}

function clientRejected(cause: unknown): AppError {
  serverLog(
    'error',
    `The identity provider rejects this server’s client id and secret: ${causesOf(cause)}. Check INTERLUDE_OIDC_CLIENT_ID, INTERLUDE_OIDC_CLIENT_SECRET and INTERLUDE_OIDC_CLIENT_AUTH.`,
  );
  return new AppError(
    'unavailable',
    'The identity provider rejects this server’s client id and secret. An administrator must correct INTERLUDE_OIDC_CLIENT_ID, INTERLUDE_OIDC_CLIENT_SECRET or INTERLUDE_OIDC_CLIENT_AUTH.',
    { cause },
  );
}

/** Messages of an error and its causes, on one line. */
function causesOf(error: unknown): string {
  const messages: string[] = [];
  for (let cause = error; cause instanceof Error && messages.length < 4; cause = cause.cause) {
    messages.push(
      cause instanceof ResponseBodyError ? `${cause.error} ${cause.error_description ?? ''}`.trim() : cause.message,
    );
  }
  return onOneLine(messages.join(', '));
}

/** Keeps foreign text from starting a new log line. */
function onOneLine(text: string): string {
  return text.replace(/[\s\p{C}]+/gu, ' ').slice(0, 500);
}
