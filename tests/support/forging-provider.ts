import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';

/** What it signs: claims, and how. */
export interface Forgery {
  claims: JWTPayload;
  header?: Record<string, unknown>;
  /** Signed with a key that nobody published, by default with the published one. */
  withKey?: CryptoKey | Uint8Array;
}

/** A provider that answers whatever a test wants it to answer. */
export class ForgingProvider {
  /** Besides what makes it a provider at all. */
  metadata: Record<string, unknown> = {};
  /** The answer of the token endpoint, made for each request. */
  token: () => Promise<unknown> = async () => ({ error: 'invalid_grant' });
  userinfo: unknown = {};
  /** Paths that answer 500. */
  readonly broken = new Set<string>();
  /** Paths that answer 401. */
  readonly refusing = new Set<string>();
  /** What came to the token endpoint, newest last. */
  readonly tokenRequests: { authorization: string | undefined; body: string }[] = [];
  /** How often it was asked for its description. */
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

  async sign({ claims, header = {}, withKey = this.#keys.privateKey }: Forgery): Promise<string> {
    return new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: 'published', ...header }).sign(withKey);
  }

  /** The published key, as bytes that could be taken for a shared secret. */
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
