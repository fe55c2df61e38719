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

/** Somebody whom the provider signed in. */
export interface SignedInPerson {
  /** With `subject`, who it is: names and addresses change hands. */
  issuer: string;
  subject: string;
  name: string;
  /** For show, and no proof of anything: it may not be verified. Null if the provider tells none. */
  email: string | null;
  /** Null: none of their groups lets them in. */
  role: PersonRole | null;
  /** The provider's own name of this sign-in, by which it may end it; null if it has none. */
  providerSessionId: string | null;
  /** By which the provider can be asked again; null if it gave none. */
  refreshToken: string | null;
  /** For `endSessionUrl`, and nothing else. */
  idToken: string;
  /** Where they wanted to go: a path of this server. */
  next: string;
  /** The `set-cookie` that ends the sign-in in progress. */
  clearedCookie: string;
}

/** A signed-in person as the provider describes them now. Fields that the refreshed claims leave out are undefined. */
export type RefreshedPerson = { [Field in 'name' | 'email' | 'role']: SignedInPerson[Field] | undefined };

/** What the provider said of itself a moment ago is good enough to send somebody there. */
const JUST_ASKED_MS = 60 * 1000;

/** Signs people in by OpenID Connect: authorization code, PKCE, and everything that comes back held against what went. */
export class OidcSignIn {
  readonly #settings: OidcSettings;
  readonly #provider: OidcProvider;
  readonly #now: () => number;
  readonly #logoutTokens: LogoutTokens;
  readonly #redirectUri: string;

  /** @param asksTogether whether those who come at the same time wait for one answer of the provider */
  constructor(settings: OidcSettings, now: () => number = Date.now, asksTogether = true) {
    this.#settings = settings;
    this.#provider = new OidcProvider(settings, now, asksTogether);
    this.#now = now;
    this.#logoutTokens = new LogoutTokens(settings, now);
    this.#redirectUri = `${settings.publicUrl}/sign-in/callback`;
  }

  /** As it was set, and as the provider calls itself. */
  get issuer(): string {
    return this.#settings.issuer;
  }

  /** The claims that bind a sealed grant to this provider and this client. */
  get grantClaims(): { iss: string; aud: string } {
    return { iss: this.#settings.issuer, aud: this.#settings.clientId };
  }

  /**
   * `GET /sign-in/provider?next=`: sends a browser to the provider.
   *
   * @param key seals the sign-in in progress: see `PendingSignIns`
   * @throws AppError `unavailable` if the provider does not answer
   */
  async begin(request: Request, next: string | null, key: Uint8Array): Promise<Response> {
    const configuration = await this.#provider.configuration(JUST_ASKED_MS);
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
   * `GET /sign-in/callback`: who came back from the provider. The role is decided here, each time anew.
   *
   * @param key opens the sign-in in progress: the one that `begin` was given
   * @throws AppError `malformed` if it is not the answer to what this browser began; `forbidden` if the provider does
   * not let them in; `unavailable` if it does not answer
   */
  async finish(request: Request, key: Uint8Array): Promise<SignedInPerson> {
    const { publicUrl } = this.#settings;
    const callback = new URL(this.#redirectUri);
    callback.search = new URL(request.url).search;
    const state = callback.searchParams.get('state');
    if (state === null) {
      throw new AppError('malformed', `This is no answer to a sign-in: it has no state. Start again at ${publicUrl}.`);
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
   * Asks the provider again about a person whom it signed in.
   *
   * @param known the subject and email of the sign-in
   * @param keep stores a new refresh token. It is called before anything else can fail: the old one may be spent
   * @returns null if the provider has ended that sign-in
   * @throws AppError `unavailable` if it does not answer, or answers about another person
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
   * Where to send a browser that has signed out here, so that it is signed out at the provider too; null if the provider
   * has no such place or does not answer.
   *
   * @param returnPath a path of this server, to which the provider sends the browser on
   * @param idTokenHint with it, most providers don't ask whether the person meant it. It stands in the address
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
   * `POST /sign-in/back-channel-logout`: the provider tells that somebody is signed out.
   *
   * @param end ends their sign-ins here. If it fails, the provider may send the same again
   * @throws AppError `malformed`, `unavailable`
   */
  async backChannelLogout<Done>(request: Request, end: (logout: ProviderLogout) => Promise<Done>): Promise<Done> {
    const token = await logoutTokenIn(request);
    return this.#logoutTokens.redeem(token, await this.#provider.configuration(), end);
  }

  #pendingBy(key: Uint8Array): PendingSignIns {
    return new PendingSignIns(this.#settings, key, this.#now);
  }

  /** Turns the code that came back into what the provider says of the person. */
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
      if (idToken === undefined || tokens.id_token === undefined) throw new TypeError('no ID token was checked');
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

/** What somebody is told whose groups let them do nothing. */
export function noRoleError({ name, issuer }: Pick<SignedInPerson, 'name' | 'issuer'>): AppError {
  return new AppError(
    'forbidden',
    `${issuer} signed you in as ${JSON.stringify(name)}, but none of your groups there may use Interlude. Ask for one that may, then sign in again. (Whoever runs Interlude: INTERLUDE_OIDC_GROUPS_CLAIM names the claim with the groups.)`,
  );
}
