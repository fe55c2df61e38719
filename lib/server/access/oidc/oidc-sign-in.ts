import { AppError } from '@interlude/protocol/errors';
import {
  authorizationCodeGrant,
  buildAuthorizationUrl,
  buildEndSessionUrl,
  calculatePKCECodeChallenge,
  ResponseBodyError,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
  refreshTokenGrant,
} from 'openid-client';
import { nextPath } from '@/lib/server/access/sign-in-pages';
import { LogoutTokens, logoutTokenIn, type ProviderLogout } from './logout-tokens';
import { OidcProvider, providerUnavailable, signInRefusal } from './oidc-provider';
import type { OidcSettings } from './oidc-settings';
import { type PendingSignIn, PendingSignIns } from './pending-sign-ins';
import { fetchClaims, type PersonRole, personName, personText, refreshedRole, roleFromClaims } from './person-claims';

export interface SignedInPerson {
  /** Identifies the person together with `subject`, because names and email addresses can be reassigned. */
  issuer: string;
  subject: string;
  name: string;
  /** For display only, possibly unverified. Null if not provided. */
  email: string | null;
  /** Null if no group grants a role. */
  role: PersonRole | null;
  /** The provider's session id, for back-channel logout; null if the provider sends none. */
  providerSessionId: string | null;
  /** Null if the provider issued none. */
  refreshToken: string | null;
  /** Only for `endSessionUrl`. */
  idToken: string;
  /** Path on this server to return to. */
  next: string;
  /** `set-cookie` value that clears the pending sign-in. */
  clearedCookie: string;
}

/** A person's current claims. A field is undefined if the refreshed claims lack it. */
export type RefreshedPerson = { [Field in 'name' | 'email' | 'role']: SignedInPerson[Field] | undefined };

/** Maximum age of metadata for redirecting a browser. */
const REDIRECT_METADATA_MS = 60 * 1000;

/** Signs people in through OpenID Connect: authorization code with PKCE, state and nonce. */
export class OidcSignIn {
  readonly #settings: OidcSettings;
  readonly #provider: OidcProvider;
  readonly #now: () => number;
  readonly #logoutTokens: LogoutTokens;
  readonly #redirectUri: string;

  /** @param sharesDiscovery concurrent sign-ins may wait for one discovery */
  constructor(settings: OidcSettings, now: () => number = Date.now, sharesDiscovery = true) {
    this.#settings = settings;
    this.#provider = new OidcProvider(settings, now, sharesDiscovery);
    this.#now = now;
    this.#logoutTokens = new LogoutTokens(settings, now);
    this.#redirectUri = `${settings.publicUrl}/sign-in/callback`;
  }

  get issuer(): string {
    return this.#settings.issuer;
  }

  /** Claims that bind a sealed grant to this provider and client. */
  get grantClaims(): { iss: string; aud: string } {
    return { iss: this.#settings.issuer, aud: this.#settings.clientId };
  }

  /**
   * `GET /sign-in/provider?next=`: redirects a browser to the provider.
   *
   * @param key seals the pending sign-in: see `PendingSignIns`
   * @throws AppError `unavailable` if the provider doesn't respond
   */
  async begin(request: Request, next: string | null, key: Uint8Array): Promise<Response> {
    const configuration = await this.#provider.configuration(REDIRECT_METADATA_MS);
    const pending = {
      state: randomState(),
      nonce: randomNonce(),
      codeVerifier: randomPKCECodeVerifier(),
      next: nextPath(next),
    };
    const location = buildAuthorizationUrl(configuration, {
      redirect_uri: this.#redirectUri,
      scope: this.#settings.scopes,
      state: pending.state,
      nonce: pending.nonce,
      code_challenge: await calculatePKCECodeChallenge(pending.codeVerifier),
      code_challenge_method: 'S256',
    });
    const headers = new Headers({ location: location.href, 'cache-control': 'no-store' });
    for (const cookie of await this.#pendingBy(key).add(pending, request.headers)) headers.append('set-cookie', cookie);
    return new Response(null, { status: 303, headers });
  }

  /**
   * `GET /sign-in/callback`: redeems the provider's response. Computes the role anew on every sign-in.
   *
   * @param key the key that was passed to `begin`
   * @throws AppError `malformed` if the response doesn't belong to this browser's sign-in; `forbidden` if the provider
   * refuses; `unavailable` if the provider doesn't respond
   */
  async finish(request: Request, key: Uint8Array): Promise<SignedInPerson> {
    const { publicUrl } = this.#settings;
    const callback = new URL(this.#redirectUri);
    callback.search = new URL(request.url).search;
    const state = callback.searchParams.get('state');
    if (state === null) {
      throw new AppError(
        'malformed',
        `This is not a response to a sign-in: it has no state. Start again at ${publicUrl}.`,
      );
    }
    const sealed = this.#pendingBy(key);
    const pending = await sealed.find(state, request.headers);
    const { idToken, signed, claims, refreshToken } = await this.#redeem(callback, pending);
    const name = personName(claims);
    const role = roleFromClaims(claims, this.#settings);
    return {
      issuer: idToken.iss,
      subject: idToken.sub,
      name,
      email: personText(claims.email),
      role,
      providerSessionId: typeof idToken.sid === 'string' ? idToken.sid : null,
      refreshToken,
      idToken: signed,
      next: pending.next,
      clearedCookie: sealed.cleared(pending.state),
    };
  }

  /**
   * Asks the provider for a person's current claims.
   *
   * @param known subject and email of the sign-in
   * @param keep stores a rotated refresh token; called before anything else can fail, because the old one may no longer
   * work
   * @returns null if the provider has ended the sign-in
   * @throws AppError `unavailable` if the provider doesn't respond, or describes another person
   */
  async refresh(
    known: { subject: string; email: string | null },
    refreshToken: string,
    keep: (refreshToken: string) => Promise<void>,
  ): Promise<RefreshedPerson | null> {
    const { issuer, groupsClaim } = this.#settings;
    const configuration = await this.#provider.configuration();
    try {
      const tokens = await refreshTokenGrant(configuration, refreshToken);
      if (tokens.refresh_token !== undefined) await keep(tokens.refresh_token);
      const about = { subject: known.subject, idToken: tokens.claims(), accessToken: tokens.access_token };
      const claims = await fetchClaims(configuration, about, groupsClaim);
      return {
        name: personText(claims.name) ?? undefined,
        email: personText(claims.email) ?? undefined,
        role: refreshedRole(claims, this.#settings, known.email),
      };
    } catch (error) {
      if (error instanceof ResponseBodyError && error.error === 'invalid_grant') return null;
      throw error instanceof AppError ? error : providerUnavailable(issuer, error);
    }
  }

  /**
   * URL that also signs the browser out at the provider; null if the provider has no such URL or doesn't respond.
   *
   * @param returnPath path on this server to return to
   * @param idTokenHint makes most providers skip the confirmation; becomes part of the URL
   */
  async endSessionUrl(returnPath: string, idTokenHint?: string): Promise<string | null> {
    const configuration = await this.#provider.configuration().catch(() => null);
    if (configuration?.serverMetadata().end_session_endpoint === undefined) return null;
    return buildEndSessionUrl(configuration, {
      post_logout_redirect_uri: `${this.#settings.publicUrl}${returnPath}`,
      ...(idTokenHint === undefined ? {} : { id_token_hint: idTokenHint }),
    }).href;
  }

  /**
   * `POST /sign-in/back-channel-logout`
   *
   * @param end ends the sign-ins here; if it fails, the provider may retry
   * @throws AppError `malformed`, `unavailable`
   */
  async backChannelLogout<Done>(request: Request, end: (logout: ProviderLogout) => Promise<Done>): Promise<Done> {
    const token = await logoutTokenIn(request);
    return this.#logoutTokens.redeem(token, await this.#provider.configuration(), end);
  }

  #pendingBy(key: Uint8Array): PendingSignIns {
    return new PendingSignIns(this.#settings, key, this.#now);
  }

  async #redeem(callback: URL, pending: PendingSignIn) {
    const { issuer, publicUrl, groupsClaim } = this.#settings;
    const configuration = await this.#provider.configuration();
    try {
      const tokens = await authorizationCodeGrant(configuration, callback, {
        expectedState: pending.state,
        expectedNonce: pending.nonce,
        pkceCodeVerifier: pending.codeVerifier,
        idTokenExpected: true,
      });
      const idToken = tokens.claims();
      if (idToken === undefined || tokens.id_token === undefined)
        throw new TypeError('the token response has no ID token');
      const claims = await fetchClaims(
        configuration,
        { subject: idToken.sub, idToken, accessToken: tokens.access_token },
        groupsClaim,
      );
      return { idToken, signed: tokens.id_token, claims, refreshToken: tokens.refresh_token ?? null };
    } catch (error) {
      throw signInRefusal(error, issuer, publicUrl);
    }
  }
}

/** The error for a person whose groups grant no role. */
export function noRoleError({ name, issuer }: Pick<SignedInPerson, 'name' | 'issuer'>): AppError {
  return new AppError(
    'forbidden',
    `${issuer} signed you in as ${JSON.stringify(name)}, but none of your groups there has access to Interlude. Ask for one that has, then sign in again. (Administrators: INTERLUDE_OIDC_GROUPS_CLAIM names the claim with the groups.)`,
  );
}
