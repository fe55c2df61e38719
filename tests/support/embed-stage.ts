import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { type BrowserContext, chromium, type Frame, type Page } from 'playwright-core';
import { expect } from 'vitest';
import { EventWriter } from './event-writer';
import { type LiveServer, startLiveServer } from './live-server';
import { chromiumPath } from './programs.mjs';
import { reservePort } from './reserve-port.mjs';
import { type SampleConsole, startSampleConsole } from './sample-console';
import { WAIT_MS } from './timeouts';
import { userTurn } from './turn-events';
import { requestOpened } from './wire-runner';

/** Host names: the dashboard, a same-site console, a cross-site console, and a console that may not embed it. */
const HOSTS = {
  dashboard: 'live.interlude.test',
  sameSite: 'console.interlude.test',
  crossSite: 'console.acme.test',
  stranger: 'console.evil.test',
} as const;

/** A dashboard, consoles on several sites, and a browser with normal site isolation. */
export interface EmbedStage {
  server: LiveServer;
  front: EmbedFront;
  console: SampleConsole;
  context: BrowserContext;
  /** The dashboard's public origin and path. */
  origin: string;
  originOf(host: keyof typeof HOSTS): string;
  /** Console messages of every page and frame. */
  said: string[];
  /** Opens the console page with an embed. */
  open(host: keyof typeof HOSTS, search: string, path?: string): Promise<Page>;
  close(): Promise<void>;
}

/** @param basePath the dashboard's base path */
export async function embedStage(basePath = ''): Promise<EmbedStage> {
  const [frontPort, consolePort] = [await reservePort(), await reservePort()];
  const originOf = (host: keyof typeof HOSTS) =>
    `http://${HOSTS[host]}:${host === 'dashboard' ? frontPort : consolePort}`;
  const server = await startLiveServer({
    env: {
      INTERLUDE_ALLOWED_HOSTS: HOSTS.dashboard,
      INTERLUDE_BASE_PATH: basePath,
      INTERLUDE_EMBED_ORIGINS: `${originOf('sameSite')}, ${originOf('crossSite')}`,
    },
  });
  const front = await EmbedFront.start(frontPort, server);
  const origin = `${originOf('dashboard')}${basePath}`;
  const api = `http://127.0.0.1:${frontPort}${basePath}`;
  const console = await startSampleConsole({ port: consolePort, dashboard: origin, api, key: server.token });
  const profile = await mkdtemp(join(tmpdir(), 'interlude-profile-'));
  const context = await launch(profile);
  context.setDefaultTimeout(WAIT_MS);
  const said: string[] = [];
  context.on('console', (message) => said.push(`${message.type()}: ${message.text()}`));
  context.on('weberror', (error) => said.push(`exception: ${String(error.error())}`));
  return {
    ...{ server, front, console, context, origin, originOf, said },
    async open(host, search, path = '/') {
      const page = await context.newPage();
      await page.goto(`${originOf(host)}${path}?${search}`);
      return page;
    },
    async close() {
      await context.close();
      await Promise.all([console.close(), front.close()]);
      await server.stop();
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/**
 * Playwright's default flags disable storage and cookie partitioning. This launch uses none of them, so frames are
 * isolated as in an ordinary browser.
 */
function launch(profile: string): Promise<BrowserContext> {
  const executablePath = chromiumPath();
  if (!executablePath) throw new Error('Chromium not found. Set CHROMIUM_PATH.');
  return chromium.launchPersistentContext(profile, {
    executablePath,
    ignoreDefaultArgs: true,
    viewport: { width: 1024, height: 700 },
    args: [
      '--headless',
      '--remote-debugging-pipe',
      `--user-data-dir=${profile}`,
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--disable-quic',
      '--no-first-run',
      '--no-default-browser-check',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--host-resolver-rules=MAP *.test 127.0.0.1',
      '--test-third-party-cookie-phaseout',
      '--hide-scrollbars',
      'about:blank',
    ],
  });
}

/** Resolves with the embed's frame once its shell has loaded. */
export async function embedIn(page: Page, origin: string): Promise<Frame> {
  const find = () => page.frames().find((frame) => frame.url().startsWith(`${origin}/embed/`));
  for (;;) {
    const found = find();
    if (found !== undefined) return found;
    await page.waitForEvent('framenavigated');
  }
}

/** A request as seen on the network. */
interface ObservedRequest {
  method: string;
  path: string;
  hasCookie: boolean;
  /** The token, or null. */
  bearer: string | null;
  origin: string | null;
  destination: string | null;
}

/** A proxy in front of a dashboard, under its public host name. Records requests. */
class EmbedFront {
  readonly passed: ObservedRequest[] = [];
  /** Every issued embed token. */
  readonly tokens: string[] = [];
  readonly #server;
  readonly #target: { url: string; token: string };
  readonly port: number;

  private constructor(target: { url: string; token: string }, port: number) {
    this.#target = target;
    this.port = port;
    this.#server = createServer((incoming, outgoing) => this.#answer(incoming, outgoing));
  }

  static async start(port: number, target: { url: string; token: string }): Promise<EmbedFront> {
    const front = new EmbedFront(target, port);
    await new Promise<void>((resolve) => front.#server.listen(port, '127.0.0.1', resolve));
    return front;
  }

  /** Revokes a token. */
  async revoke(token: string): Promise<void> {
    const api = `${this.#target.url}/api/v1`;
    const me = await fetch(`${api}/me`, { headers: { authorization: `Bearer ${token}` } });
    const { credentialId } = (await me.json()) as { credentialId: string };
    const headers = { authorization: `Bearer ${this.#target.token}` };
    const response = await fetch(`${api}/credentials/${credentialId}`, { method: 'DELETE', headers });
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  }

  async close(): Promise<void> {
    await new Promise((resolve) => {
      this.#server.close(resolve);
      this.#server.closeAllConnections();
    });
  }

  #answer(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { method = 'GET', url = '/', headers } = incoming;
    const bearer = /^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1] ?? null;
    this.passed.push({
      method,
      path: url,
      hasCookie: headers.cookie !== undefined,
      bearer,
      origin: headers.origin ?? null,
      destination: (headers['sec-fetch-dest'] as string | undefined) ?? null,
    });
    const { hostname, port } = new URL(this.#target.url);
    const onward = request({ hostname, port, method, path: url, headers }, (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers);
      outgoing.flushHeaders();
      response.pipe(outgoing);
      if (url === '/api/v1/embed-tokens')
        void json(response).then((made) => this.tokens.push((made as { token: string }).token));
    });
    onward.on('error', () => outgoing.destroy());
    outgoing.on('close', () => onward.destroy());
    incoming.pipe(onward);
  }
}

/** Sessions, frames and tokens for tests of embeds. */

export interface EmbeddedSession {
  sessionId: string;
  agentId: string;
  agent: EventWriter;
}

let sessions = 0;

/** Creates a session and agent with the reply “Here I am”. */
export async function newSession({ server }: EmbedStage): Promise<EmbeddedSession> {
  sessions += 1;
  const [sessionId, agentId] = [`session-${sessions}`, `agent-${sessions}`];
  const agent = new EventWriter(server, agentId);
  await agent.write(sessionId, userTurn('r1', 'Hello', 'Here I am'));
  return { sessionId, agentId, agent };
}

export const permissionAsked = (id: string) =>
  requestOpened({ request_id: id, kind: 'permission', tool_name: 'Bash', title: 'Run it', input: { command: 'ls' } });

/** An event reported by embed.js to the console's page. */
interface EmbedEvent {
  type: string;
  state?: string;
  message?: string;
  [more: string]: unknown;
}

export function embedEvents(page: Page): Promise<EmbedEvent[]> {
  return page.evaluate(() => (window as unknown as { events: EmbedEvent[] }).events);
}

export async function embedStates(page: Page): Promise<string[]> {
  return (await embedEvents(page)).flatMap(({ type, state }) => (type === 'state' && state !== undefined ? state : []));
}

/** Resolves once the frame's transcript shows the text and is live. */
export async function showsTranscript(frame: Frame, text = 'Here I am'): Promise<void> {
  await frame.getByRole('log', { name: 'Transcript' }).getByText(text).waitFor();
  await frame.getByRole('status', { name: 'Connection' }).getByText('Live').waitFor();
}

/** API requests after the first `from`. */
export function apiRequestsSince({ front }: EmbedStage, from: number): ObservedRequest[] {
  return front.passed.slice(from).filter(({ path }) => path.startsWith('/api/'));
}

/** Signs the browser in to the dashboard. */
export async function signInBeside(site: EmbedStage): Promise<Page> {
  const own = await site.context.newPage();
  await own.goto(`${site.origin}/sign-in?token=${site.server.token}`);
  // over plain HTTP, a browser sends no Sec-Fetch headers, so the sign-in page asks first
  await own.getByRole('button', { name: 'Sign in' }).click();
  // Chromium may hang closing a tab that is navigating to another browsing context group
  await own.waitForURL(({ pathname }) => !pathname.endsWith('/sign-in'));
  return own;
}

export async function embedToken(site: EmbedStage, sessionId: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${site.front.port}/api/v1/embed-tokens`, {
    method: 'POST',
    headers: { authorization: `Bearer ${site.server.token}` },
    body: JSON.stringify({ sessionId, parentOrigin: site.originOf('crossSite') }),
  });
  return ((await response.json()) as { token: string }).token;
}

/**
 * Shows a session in a frame while the same browser is signed in to the dashboard. Expects every request of the frame
 * to use its token.
 *
 * @param more additional frame options, as `&name=value`
 */
export async function expectLiveByTokenAlone(
  site: EmbedStage,
  host: Parameters<EmbedStage['open']>[0],
  more = '',
): Promise<void> {
  const own = await signInBeside(site);
  await own.getByRole('status', { name: 'Connection' }).getByText('Live').waitFor();
  const { sessionId, agent } = await newSession(site);
  const from = site.front.passed.length;
  const page = await site.open(host, `session=${sessionId}${more}`);
  const frame = await embedIn(page, site.origin);
  await showsTranscript(frame);
  await agent.write(sessionId, userTurn('r2', 'Go on', 'Said while it was watched'));
  await showsTranscript(frame, 'Said while it was watched');

  // The frame uses neither the cookie nor the dashboard's shared worker.
  const asked = apiRequestsSince(site, from).filter(
    ({ path, bearer }) => bearer?.startsWith('ile_') || path.includes(sessionId),
  );
  expect(asked.some(({ path }) => path.startsWith('/api/v1/stream'))).toBe(true);
  expect(asked.filter(({ hasCookie, method }) => hasCookie && method !== 'OPTIONS')).toEqual([]);
  expect(await embedStates(page)).toEqual(['connected']);
  const kept = await frame
    .evaluate(() => Object.keys(localStorage))
    .catch((error: Error) => (error.message.includes('sandbox') ? [] : [error.message]));
  // The dashboard tab has stored its user.
  expect(kept.filter((key) => key !== 'interlude:current')).toEqual([]);
  await Promise.all([page.close(), own.close()]);
}
