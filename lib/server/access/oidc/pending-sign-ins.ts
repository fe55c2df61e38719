import { AppError } from '@interlude/protocol/errors';
import { EncryptJWT, errors, type JWTDecryptOptions, type JWTPayload, jwtDecrypt } from 'jose';
import { cookiesIn } from '@/lib/server/access/session-cookie';
import type { OidcSettings } from './oidc-settings';

/** A sign-in that was sent to the provider and has not returned yet. */
export interface PendingSignIn {
  state: string;
  nonce: string;
  codeVerifier: string;
  /** Path on this server. */
  next: string;
}

const LIFETIME_SECONDS = 10 * 60;

/** Pending sign-ins kept for other tabs. More cookies would exceed servers' header limits. */
const MAX_OTHERS = 4;

/**
 * Pending sign-ins, each sealed in a cookie of the browser that started it: no other party can read, forge or finish
 * one. The cookie is named after the sign-in's state, so tabs don't interfere.
 */
export class PendingSignIns {
  readonly #settings: Pick<OidcSettings, 'issuer' | 'clientId' | 'publicUrl'>;
  readonly #now: () => number;
  readonly #prefix: string;
  readonly #attributes: string;
  readonly #key: Uint8Array;

  /** @param key 32 random bytes shared by all instances of this server */
  constructor(settings: Pick<OidcSettings, 'issuer' | 'clientId' | 'publicUrl'>, key: Uint8Array, now: () => number) {
    this.#settings = settings;
    this.#now = now;
    // the browser returns to the public URL, so its scheme decides
    const { protocol, pathname } = new URL(settings.publicUrl);
    const secure = protocol === 'https:';
    this.#prefix = `${secure ? '__Secure-' : ''}interlude-oidc-`;
    this.#attributes = `Path=${pathname.replace(/\/$/, '')}/sign-in; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}`;
    this.#key = key;
  }

  /** `set-cookie` values for a new sign-in: its own cookie, and deletions of expired and surplus cookies. */
  async add(pending: PendingSignIn, headers: Headers): Promise<string[]> {
    const iat = Math.floor(this.#now() / 1000);
    const { issuer: iss, clientId: aud } = this.#settings;
    const value = await seal({ ...pending, iss, aud, iat, exp: iat + LIFETIME_SECONDS }, this.#key);
    const stale = await this.#staleCookies(headers);
    return [
      `${this.#prefix}${pending.state}=${value}; ${this.#attributes}; Max-Age=${LIFETIME_SECONDS}`,
      ...stale.map((name) => this.#cleared(name)),
    ];
  }

  /**
   * Returns the sign-in with this state, if this browser started it.
   *
   * @throws AppError `malformed`
   */
  async find(state: string, headers: Headers): Promise<PendingSignIn> {
    const value = cookiesIn(headers).get(`${this.#prefix}${state}`);
    if (value === undefined) {
      throw this.#refused('This browser has no such sign-in in progress.');
    }
    try {
      const payload = await this.#open(value);
      // two states can share a cookie name
      if (payload.state === state) return payload;
    } catch (cause) {
      if (!(cause instanceof errors.JOSEError)) throw cause;
      const isLate = cause instanceof errors.JWTExpired;
      throw isLate
        ? this.#refused(`This sign-in took longer than ${LIFETIME_SECONDS / 60} minutes.`, cause)
        : this.#refused('The cookie of this sign-in can’t be read.', cause);
    }
    throw this.#refused('The cookie of this sign-in belongs to another one.');
  }

  /** The cookie that deletes a pending sign-in. */
  cleared(state: string): string {
    return this.#cleared(`${this.#prefix}${state}`);
  }

  #cleared(name: string): string {
    return `${name}=; ${this.#attributes}; Max-Age=0`;
  }

  /** Names of expired, unreadable and surplus cookies. */
  async #staleCookies(headers: Headers): Promise<string[]> {
    const pending = [...cookiesIn(headers)].filter(([name]) => name.startsWith(this.#prefix));
    const aged = pending.map(async ([name, value]) => {
      const startedAt = await this.#open(value).then(
        ({ iat }) => iat ?? 0,
        () => 0,
      );
      return { name, startedAt };
    });
    const newestFirst = (await Promise.all(aged)).sort((one, other) => other.startedAt - one.startedAt);
    return newestFirst.filter(({ startedAt }, index) => startedAt === 0 || index >= MAX_OTHERS).map(({ name }) => name);
  }

  async #open(value: string) {
    return open<PendingSignIn>(value, this.#key, {
      issuer: this.#settings.issuer,
      audience: this.#settings.clientId,
      requiredClaims: ['state', 'nonce', 'codeVerifier', 'next', 'exp', 'iat'],
      currentDate: new Date(this.#now()),
    });
  }

  #refused(problem: string, cause?: unknown): AppError {
    return new AppError('malformed', `${problem} Start again at ${this.#settings.publicUrl}.`, { cause });
  }
}

/**
 * Encrypts claims as a JWE (`dir`, `A256GCM`).
 *
 * @param key 32 random bytes shared by all instances of this server
 */
export function seal(claims: JWTPayload, key: Uint8Array): Promise<string> {
  return new EncryptJWT(claims).setProtectedHeader({ alg: 'dir', enc: 'A256GCM' }).encrypt(key);
}

/** @throws JOSEError for a wrong key, a modified token or unmet options */
export async function open<Claims>(sealed: string, key: Uint8Array, options: JWTDecryptOptions) {
  const { payload } = await jwtDecrypt<Claims>(sealed, key, {
    keyManagementAlgorithms: ['dir'],
    contentEncryptionAlgorithms: ['A256GCM'],
    ...options,
  });
  return payload;
}
