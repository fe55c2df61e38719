import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import type { Provider } from 'oidc-provider';

/** A user account. */
export interface Account {
  name?: string;
  email?: string;
  email_verified?: boolean;
  groups?: string[];
}

interface Client {
  id: string;
  secret: string;
  publicUrl: string;
  backChannelUrl?: string;
}

/** A real OpenID provider on loopback. Signs in `visitor` without user interaction. */
export class IdentityProvider {
  readonly accounts: Record<string, Account>;
  /** The next user to sign in; null denies consent. */
  visitor: string | null = null;
  givesRefreshTokens = true;
  /** Makes the userinfo endpoint fail. */
  hidesPeople = false;
  /** Number of refresh requests. */
  refreshes = 0;
  #server: Server;
  #port: number;

  private constructor(accounts: Record<string, Account>, server: Server) {
    this.accounts = accounts;
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
  }

  static async start(accounts: Record<string, Account>, clients: Client[]): Promise<IdentityProvider> {
    const server = createServer();
    await listen(server, 0);
    const identity = new IdentityProvider(accounts, server);
    // Suppress the import-time warning about the Node version.
    const { Provider } = await import('oidc-provider');
    const provider = new Provider(identity.issuer, await configurationOf(identity, clients));
    provider.on('grant.success', ({ oidc }) => {
      if (oidc.params?.grant_type === 'refresh_token') identity.refreshes += 1;
    });
    const answer = provider.callback();
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      if (identity.hidesPeople && request.url === '/me') return response.writeHead(503).end();
      if (!request.url?.startsWith('/visit/')) return answer(request, response);
      const visitor = identity.visitor;
      const result = visitor === null ? { error: 'access_denied' } : { login: { accountId: visitor } };
      provider.interactionFinished(request, response, result).catch((error) => response.destroy(error));
    });
    return identity;
  }

  get issuer(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }

  /** Restarts at the same address with the same state. */
  async startAgain(): Promise<void> {
    await listen(this.#server, this.#port);
  }
}

async function listen(server: Server, port: number): Promise<void> {
  await new Promise<void>((listening, failed) => {
    server.once('error', failed);
    server.listen(port, '127.0.0.1', listening);
  });
}

async function configurationOf(identity: IdentityProvider, clients: Client[]): Promise<Record<string, unknown>> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  return {
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig' }] },
    cookies: { keys: ['only of this test'] },
    clients: clients.map(({ id, secret, publicUrl, backChannelUrl }) => ({
      client_id: id,
      client_secret: secret,
      grant_types: ['authorization_code', 'refresh_token'],
      redirect_uris: [`${publicUrl}/sign-in/callback`],
      post_logout_redirect_uris: [`${publicUrl}/signed-out`],
      ...(backChannelUrl && {
        backchannel_logout_uri: backChannelUrl,
        backchannel_logout_session_required: true,
      }),
    })),
    claims: { openid: ['sub'], profile: ['name'], email: ['email', 'email_verified'], groups: ['groups'] },
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      rpInitiatedLogout: {
        enabled: true,
        logoutSource: (context: { body: string }, form: string) => {
          context.body = form;
        },
      },
    },
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/visit/${uid}` },
    /** A removed account no longer exists: refreshing its tokens fails with `invalid_grant`. */
    findAccount: (_: unknown, sub: string) => {
      const account = identity.accounts[sub];
      return account && { accountId: sub, claims: () => ({ sub, ...account }) };
    },
    rotateRefreshToken: true,
    issueRefreshToken: async () => identity.givesRefreshTokens,
    /** Skips the consent screen. */
    loadExistingGrant: async ({ oidc }: GrantContext) => {
      const { client, session, provider } = oidc;
      const known = session.grantIdFor(client.clientId);
      if (known !== undefined) return provider.Grant.find(known);
      const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
      grant.addOIDCScope('openid profile email groups');
      await grant.save();
      return grant;
    },
    // Disables the guard against requests to loopback.
    fetch: (url: string, { dispatcher: _, ...options }: RequestInit & { dispatcher?: unknown }) => fetch(url, options),
    ttl: {
      AccessToken: 60,
      AuthorizationCode: 60,
      IdToken: 60,
      Interaction: 60,
      RefreshToken: 600,
      Session: 600,
      Grant: 600,
    },
  };
}

interface GrantContext {
  oidc: {
    provider: Provider;
    client: { clientId: string };
    session: { accountId: string; grantIdFor(clientId: string): string | undefined };
  };
}

/** Claims and signing options. */
interface ForgedToken {
  claims: JWTPayload;
  header?: Record<string, unknown>;
  /** Signs with an unpublished key. Default: the published key. */
  withKey?: CryptoKey | Uint8Array;
}

/** An OpenID provider with scripted responses. */
export class ForgingProvider {
  /** Additional metadata fields. */
  metadata: Record<string, unknown> = {};
  /** Builds the token endpoint's response. */
  token: () => Promise<unknown> = async () => ({ error: 'invalid_grant' });
  userinfo: unknown = {};
  /** Paths that return 500. */
  readonly broken = new Set<string>();
  /** Paths that return 401. */
  readonly refusing = new Set<string>();
  /** Requests to the token endpoint, oldest first. */
  readonly tokenRequests: { authorization: string | undefined; body: string }[] = [];
  /** Number of metadata requests. */
  asked = 0;
  #server: Server;
  #keys: { publicKey: CryptoKey; privateKey: CryptoKey };

  private constructor(server: Server, keys: { publicKey: CryptoKey; privateKey: CryptoKey }) {
    this.#server = server;
    this.#keys = keys;
  }

  static async start(): Promise<ForgingProvider> {
    const server = createServer(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += chunk;
      const path = new URL(request.url ?? '/', provider.issuer).pathname;
      if (path === '/token') provider.tokenRequests.push({ authorization: request.headers.authorization, body });
      const answer = provider.broken.has(path) ? null : await provider.#answer(path);
      if (provider.refusing.has(path)) {
        response.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' }).end();
        return;
      }
      const isError = answer !== null && typeof answer === 'object' && 'error' in answer;
      response.writeHead(answer === null ? 500 : isError ? 400 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(answer));
    });
    const provider = new ForgingProvider(server, await generateKeyPair('ES256'));
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    return provider;
  }

  get issuer(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async sign({ claims, header = {}, withKey = this.#keys.privateKey }: ForgedToken): Promise<string> {
    return new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: 'published', ...header }).sign(withKey);
  }

  /** The published key as bytes, for use as an HMAC secret. */
  async publicBytes(): Promise<Uint8Array> {
    return new TextEncoder().encode(JSON.stringify(await exportJWK(this.#keys.publicKey)));
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }

  async #answer(path: string): Promise<unknown> {
    if (path === '/token') return this.token();
    if (path === '/userinfo') return this.userinfo;
    if (path === '/keys') {
      return { keys: [{ ...(await exportJWK(this.#keys.publicKey)), kid: 'published', alg: 'ES256', use: 'sig' }] };
    }
    this.asked++;
    return {
      issuer: this.issuer,
      authorization_endpoint: `${this.issuer}/authorize`,
      token_endpoint: `${this.issuer}/token`,
      userinfo_endpoint: `${this.issuer}/userinfo`,
      jwks_uri: `${this.issuer}/keys`,
      id_token_signing_alg_values_supported: ['ES256'],
      ...this.metadata,
    };
  }
}
