import { AppError } from '@interlude/protocol/errors';
import { createRemoteJWKSet, errors, type JWTPayload, jwtVerify } from 'jose';
import type { Configuration } from 'openid-client';
import { readForm } from '@/lib/server/access/sign-in-pages';
import { providerUnavailable } from './oidc-provider';
import { isLoopback, type OidcSettings } from './oidc-settings';

/** A logout reported by the provider. At least one of `subject` and `providerSessionId` is set. */
export interface ProviderLogout {
  /** Subject whose sign-ins all end, unless `providerSessionId` selects one. */
  subject: string | null;
  providerSessionId: string | null;
  /**
   * Epoch milliseconds at the end of the token's second. Without `providerSessionId`, later sign-ins stay, so a token
   * replayed to another instance ends no new ones.
   */
  issuedAt: number;
}

const EVENT = 'http://schemas.openid.net/event/backchannel-logout';

/** The specification requires the first type; older providers send the second, or none. */
const TYPES = ['logout+jwt', 'jwt', undefined];

const ASYMMETRIC = /^(RS|PS|ES)(256|384|512)$|^Ed(DSA|25519)$/;

const MAX_AGE_SECONDS = 5 * 60;
const CLOCK_TOLERANCE_SECONDS = 30;
const MEMORY_MS = (MAX_AGE_SECONDS + CLOCK_TOLERANCE_SECONDS) * 1000;

/** Only the provider can fill this map, and no provider signs out this many people in five minutes. */
const MAX_REMEMBERED = 10_000;

/**
 * Verifies back-channel logout tokens.
 *
 * @see OpenID Connect Back-Channel Logout 1.0, 2.4 and 2.6
 */
export class LogoutTokens {
  readonly #settings: OidcSettings;
  readonly #now: () => number;
  /** Expiry of each used token, by `jti`. */
  readonly #redeemed = new Map<string, number>();
  #keys: { at: string; get: ReturnType<typeof createRemoteJWKSet> } | null = null;

  constructor(settings: OidcSettings, now: () => number) {
    this.#settings = settings;
    this.#now = now;
  }

  /**
   * Verifies a token and applies it once. If `end` fails, the token may be sent again.
   *
   * @throws AppError `malformed` if the token is forged, for another client or stale; `unavailable` if the provider's
   * keys can't be fetched
   */
  async redeem<Done>(
    token: string,
    configuration: Configuration,
    end: (logout: ProviderLogout) => Promise<Done>,
  ): Promise<Done> {
    const claims = await this.#verified(token, configuration);
    const { sub, sid, jti, iat } = claims;
    if (typeof jti !== 'string' || jti === '') throw refused('it has no jti');
    if (Object.hasOwn(claims, 'nonce')) throw refused('it has a nonce, like an ID token');
    const { events } = claims;
    const event = isObject(events) && Object.hasOwn(events, EVENT) ? events[EVENT] : null;
    if (!isObject(event)) throw refused('it has no logout event');
    const isText = (value: unknown) => value === undefined || (typeof value === 'string' && value !== '');
    if (!isText(sub) || !isText(sid) || (sub === undefined && sid === undefined)) {
      throw refused('it needs a sub or a sid, and each must be a non-empty string');
    }
    this.#remember(jti);
    try {
      return await end({
        subject: sub ?? null,
        providerSessionId: typeof sid === 'string' ? sid : null,
        issuedAt: (iat ?? 0) * 1000 + 999,
      });
    } catch (error) {
      this.#redeemed.delete(jti);
      throw error;
    }
  }

  async #verified(token: string, configuration: Configuration): Promise<JWTPayload> {
    const { issuer, jwks_uri, id_token_signing_alg_values_supported } = configuration.serverMetadata();
    const algorithms = (id_token_signing_alg_values_supported ?? ['RS256']).filter((name) => ASYMMETRIC.test(name));
    try {
      const { payload, protectedHeader } = await jwtVerify(token, this.#keysAt(jwks_uri), {
        issuer,
        audience: this.#settings.clientId,
        algorithms,
        requiredClaims: ['iat', 'jti', 'events'],
        maxTokenAge: MAX_AGE_SECONDS,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        currentDate: new Date(this.#now()),
      });
      const type = protectedHeader.typ?.toLowerCase().replace(/^application\//, '');
      if (!TYPES.includes(type)) throw refused(`its type is ${JSON.stringify(protectedHeader.typ)}`);
      return payload;
    } catch (error) {
      if (error instanceof AppError) throw error;
      if (isTokenFault(error)) throw refused(error.message, error);
      throw providerUnavailable(this.#settings.issuer, error);
    }
  }

  #keysAt(address: string | undefined): ReturnType<typeof createRemoteJWKSet> {
    const url = new URL(address ?? '');
    if (url.protocol !== 'https:' && !isLoopback(new URL(this.#settings.issuer))) {
      throw new TypeError(`its keys are at ${url.href}, which is not https`);
    }
    if (this.#keys?.at !== url.href) this.#keys = { at: url.href, get: createRemoteJWKSet(url) };
    return this.#keys.get;
  }

  #remember(jti: string): void {
    const now = this.#now();
    for (const [id, until] of this.#redeemed) {
      if (until > now && this.#redeemed.size < MAX_REMEMBERED) break;
      this.#redeemed.delete(id);
    }
    if (this.#redeemed.has(jti)) throw refused('it was already used');
    this.#redeemed.set(jti, now + MEMORY_MS);
  }
}

/** True if the token is at fault rather than the key request. */
function isTokenFault(error: unknown): error is errors.JOSEError {
  return (
    error instanceof errors.JOSEError &&
    !(error instanceof errors.JWKSTimeout) &&
    !(error instanceof errors.JWKSInvalid) &&
    error.code !== 'ERR_JOSE_GENERIC'
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function refused(why: string, cause?: unknown): AppError {
  return new AppError('malformed', `This logout token is rejected: ${why}.`, { cause });
}

/** Generous: logout tokens are smaller than 2 KiB. */
const MAX_FORM_BYTES = 32 * 1024;

/**
 * Reads the logout token from a form that anyone may post.
 *
 * @throws AppError `malformed`, `too_large`
 */
export async function logoutTokenIn(request: Request): Promise<string> {
  const form = new URLSearchParams(await readForm(request, 'logout', MAX_FORM_BYTES));
  const [token, ...more] = form.getAll('logout_token');
  if (token !== undefined && token !== '' && more.length === 0) return token;
  throw new AppError('malformed', 'A back-channel logout is a form with one field, logout_token. Send that.');
}
