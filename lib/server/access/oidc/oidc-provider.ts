import { AppError } from '@interlude/protocol/errors';
import {
  allowInsecureRequests,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  discovery,
  enableNonRepudiationChecks,
} from 'openid-client';
import { isLoopback, type OidcSettings } from './oidc-settings';
import { providerAway } from './provider-refusal';

/** Somebody waits. */
const TIMEOUT_SECONDS = 5;

/** How long what the provider says of itself is taken for true while a sign-in is under way. */
const KEPT_MS = 60 * 60 * 1000;

/**
 * The identity provider, as it describes itself. It is asked when somebody wants to sign in and not before, so that
 * this server starts without it; whoever comes while it is asked waits for the same answer, where a process lives to
 * bring it. Elsewhere the request that asks may be given up, and its question with it.
 *
 * Failure: while the provider is away everybody who wants to sign in is told so, and asks it anew.
 */
export class OidcProvider {
  readonly #settings: OidcSettings;
  readonly #now: () => number;
  readonly #asksTogether: boolean;
  #known: { configuration: Configuration; at: number } | null = null;
  #asking: Promise<Configuration> | null = null;

  constructor(settings: OidcSettings, now: () => number, asksTogether: boolean) {
    this.#settings = settings;
    this.#now = now;
    this.#asksTogether = asksTogether;
  }

  /**
   * What the provider said of itself no longer ago than `maxAgeMs`.
   *
   * @throws AppError `unavailable`
   */
  async configuration(maxAgeMs: number = KEPT_MS): Promise<Configuration> {
    const ageMs = this.#known === null ? Number.POSITIVE_INFINITY : this.#now() - this.#known.at;
    if (this.#known !== null && ageMs >= 0 && ageMs < maxAgeMs) return this.#known.configuration;
    if (!this.#asksTogether) return this.#ask();
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = null;
    });
    return this.#asking;
  }

  async #ask(): Promise<Configuration> {
    const { issuer, clientId, clientSecret, clientAuth } = this.#settings;
    const server = new URL(issuer);
    let configuration: Configuration;
    try {
      configuration = await discovery(server, clientId, {}, authBy(clientAuth, clientSecret), {
        timeout: TIMEOUT_SECONDS,
        execute: [enableNonRepudiationChecks, ...(isLoopback(server) ? [allowInsecureRequests] : [])],
      });
    } catch (cause) {
      throw providerAway(issuer, cause);
    }
    const itself = configuration.serverMetadata().issuer;
    // The library lets some providers name another issuer, by which people of any tenant could come in.
    if (!URL.canParse(itself) || new URL(itself).href !== server.href) {
      throw new AppError(
        'unavailable',
        `The identity provider calls itself ${JSON.stringify(itself)}. Whoever runs Interlude has to set INTERLUDE_OIDC_ISSUER to the issuer of your own tenant.`,
      );
    }
    this.#known = { configuration, at: this.#now() };
    return configuration;
  }
}

/** Basic unless the provider says that it takes only the other: that is what a provider that says nothing takes. */
function authBy(how: OidcSettings['clientAuth'], secret: string): ClientAuth {
  const basic = ClientSecretBasic(secret);
  const post = ClientSecretPost(secret);
  return (server, client, body, headers) => {
    const taken = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const isBasic = how === null ? taken.includes('client_secret_basic') : how === 'basic';
    (isBasic ? basic : post)(server, client, body, headers);
  };
}
