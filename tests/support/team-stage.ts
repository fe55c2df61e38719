import { mkdtempSync, rmSync } from 'node:fs';
import { createServer as createHttpServer, type Server as HttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Me } from '@interlude/protocol/access';
import { createServer, type Server } from '@/lib/server/create-server';
import { IdentityProvider } from './identity-provider';

export const PUBLIC_URL = 'https://interlude.example.com';
export const TOKEN = 'a-token-for-tests-0123456789';

/** A server with OpenID sign-in: admin `ada`, viewer `vera`, and `nobody` without an allowed group. */
export class TeamStage {
  readonly folder = mkdtempSync(join(tmpdir(), 'interlude-team-'));
  readonly identity: IdentityProvider;
  server: Server;
  readonly #backChannel: HttpServer;

  private constructor(identity: IdentityProvider, backChannel: HttpServer) {
    this.identity = identity;
    this.#backChannel = backChannel;
    this.server = this.serverWith(TOKEN);
    // the provider's back-channel calls arrive on loopback
    backChannel.on('request', async (request, response) => {
      let body = '';
      for await (const chunk of request) body += chunk;
      const headers = { host: 'interlude.example.com', 'content-type': 'application/x-www-form-urlencoded' };
      const sent = new Request(`${PUBLIC_URL}/sign-in/back-channel-logout`, { method: 'POST', headers, body });
      response.writeHead((await this.server.handle(sent)).status).end();
    });
  }

  static async start(): Promise<TeamStage> {
    const backChannel = createHttpServer();
    await new Promise<void>((listening) => backChannel.listen(0, '127.0.0.1', listening));
    const backChannelUrl = `http://127.0.0.1:${(backChannel.address() as AddressInfo).port}/`;
    const client = { id: 'interlude', secret: 'the secret of interlude', publicUrl: PUBLIC_URL, backChannelUrl };
    const identity = await IdentityProvider.start(
      {
        ada: { name: 'Ada Lovelace', email: 'ada@example.com', email_verified: true, groups: ['admins'] },
        vera: { name: 'Vera', groups: ['staff'] },
        nobody: { name: 'No Body', groups: ['elsewhere'] },
      },
      [client],
    );
    return new TeamStage(identity, backChannel);
  }

  async stop(): Promise<void> {
    await this.server.close();
    await this.identity.stop();
    this.#backChannel.close();
    rmSync(this.folder, { recursive: true });
  }

  /** Starts another server on the same database. */
  serverWith(token: string, env: Record<string, string> = {}): Server {
    return createServer({
      INTERLUDE_TOKEN: token,
      INTERLUDE_DATA_DIR: this.folder,
      INTERLUDE_OIDC_ISSUER: this.identity.issuer,
      INTERLUDE_OIDC_CLIENT_ID: 'interlude',
      INTERLUDE_OIDC_CLIENT_SECRET: 'the secret of interlude',
      INTERLUDE_OIDC_SCOPES: 'openid profile email groups',
      INTERLUDE_OIDC_ADMIN_GROUPS: 'admins',
      INTERLUDE_OIDC_VIEWER_GROUPS: 'staff',
      INTERLUDE_PUBLIC_URL: PUBLIC_URL,
      ...env,
    });
  }

  /** Signs in through the provider. */
  async signIn(visitor: string, next = '/'): Promise<{ browser: CookieBrowser; answer: Response }> {
    this.identity.visitor = visitor;
    const browser = new CookieBrowser();
    const address = new URL(`/sign-in/provider?next=${encodeURIComponent(next)}`, PUBLIC_URL);
    const begun = await this.server.handle(browser.request(address));
    browser.keep(address, begun.headers);
    const { url } = await browser.follow(begun.headers.get('location') ?? '');
    const response = await this.server.handle(browser.request(url));
    browser.keep(url, response.headers);
    return { browser, answer: response };
  }

  /** Sends a request as this browser's dashboard does. */
  ask(browser: CookieBrowser, path: string, method = 'GET', body?: object): Promise<Response> {
    const request = browser.request(new URL(path, PUBLIC_URL));
    const headers = new Headers(request.headers);
    headers.set('sec-fetch-site', 'same-origin');
    return this.server.handle(new Request(request.url, { method, headers, ...sent(headers, body) }));
  }

  /** Sends a request as a program does. */
  askBy(token: string, path: string, method = 'GET', body?: object): Promise<Response> {
    const headers = new Headers({ authorization: `Bearer ${token}` });
    return this.server.handle(new Request(new URL(path, PUBLIC_URL), { method, headers, ...sent(headers, body) }));
  }

  async me(browser: CookieBrowser): Promise<Me> {
    return (await this.ask(browser, '/api/v1/me')).json();
  }
}

function sent(headers: Headers, body?: object): { body?: string } {
  if (body === undefined) return {};
  headers.set('content-type', 'application/json');
  return { body: JSON.stringify(body) };
}

/** The parts of a browser that a sign-in needs: cookies by origin and path, and redirects. */
export class CookieBrowser {
  /** Cookies by origin, then name. */
  readonly #jars = new Map<string, Map<string, { value: string; path: string }>>();

  /** Requests a URL and follows redirects within the same origin. */
  async follow(address: string | URL, init: RequestInit = {}): Promise<{ url: URL; response: Response }> {
    let url = new URL(address);
    let response = await this.#visit(url, init);
    for (;;) {
      const location = response.headers.get('location');
      if (location === null) return { url, response };
      await response.body?.cancel();
      const next = new URL(location, url);
      if (next.origin !== url.origin) return { url: next, response };
      url = next;
      response = await this.#visit(url);
    }
  }

  /** Builds a request with the URL's cookies. */
  request(address: string | URL, init: RequestInit = {}): Request {
    const headers = new Headers(init.headers);
    const cookie = this.cookiesFor(new URL(address));
    if (cookie !== '') headers.set('cookie', cookie);
    return new Request(address, { ...init, headers });
  }

  keep(url: URL, headers: Headers): void {
    const jar = this.#jars.get(url.origin) ?? new Map();
    this.#jars.set(url.origin, jar);
    for (const line of headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
      const name = pair.slice(0, pair.indexOf('='));
      const attribute = (wanted: string) =>
        attributes.find((one) => one.toLowerCase().startsWith(`${wanted}=`))?.slice(wanted.length + 1);
      const expires = attribute('expires');
      const isGone = attribute('max-age') === '0' || (expires !== undefined && Date.parse(expires) < Date.now());
      if (isGone) jar.delete(name);
      else jar.set(name, { value: pair.slice(name.length + 1), path: attribute('path') ?? '/' });
    }
  }

  cookiesFor(url: URL): string {
    const all = [...(this.#jars.get(url.origin) ?? [])];
    const meant = all.filter(([, { path }]) => `${url.pathname}/`.startsWith(path.endsWith('/') ? path : `${path}/`));
    return meant.map(([name, { value }]) => `${name}=${value}`).join('; ');
  }

  async #visit(url: URL, init: RequestInit = {}): Promise<Response> {
    const { headers } = this.request(url, init);
    const response = await fetch(url, { ...init, headers, redirect: 'manual' });
    this.keep(url, response.headers);
    return response;
  }
}
