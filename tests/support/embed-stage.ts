import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContext, chromium, type Frame, type Page } from 'playwright-core';
import { chromiumPath } from './chromium-path.mjs';
import { EmbedFront } from './embed-front';
import { type LiveServer, startLiveServer } from './live-server';
import { ownPort } from './own-port.mjs';
import { WAIT_MS } from './patience';
import { type SampleConsole, startSampleConsole } from './sample-console';

/** The dashboard's name, one beside it on the same site, one of another site, and one that may not embed it. */
export const HOSTS = {
  dashboard: 'live.interlude.test',
  sameSite: 'console.interlude.test',
  crossSite: 'console.acme.test',
  stranger: 'console.evil.test',
} as const;

/** A dashboard, consoles on several sites, and a browser that keeps sites apart as people's browsers do. */
export interface EmbedStage {
  server: LiveServer;
  front: EmbedFront;
  console: SampleConsole;
  context: BrowserContext;
  /** The dashboard's origin, as the browser knows it, and its path. */
  origin: string;
  originOf(host: keyof typeof HOSTS): string;
  /** What the browser's consoles said, of every page and frame. */
  said: string[];
  /** The console's page with an embed in it. */
  open(host: keyof typeof HOSTS, search: string, path?: string): Promise<Page>;
  close(): Promise<void>;
}

/** @param basePath what the dashboard is beneath */
export async function embedStage(basePath = ''): Promise<EmbedStage> {
  const [frontPort, consolePort] = [await ownPort(), await ownPort()];
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
 * Playwright's own flags switch off what keeps the storage and cookies of frames of other sites apart, so that frames
 * share workers and are signed in as in no browser that people use. None of them is used here.
 */
function launch(profile: string): Promise<BrowserContext> {
  const executablePath = chromiumPath();
  if (!executablePath) throw new Error('there is no Chromium; name yours with CHROMIUM_PATH');
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

/** The embed in a console's page, once its shell is there. */
export async function embedIn(page: Page, origin: string): Promise<Frame> {
  const find = () => page.frames().find((frame) => frame.url().startsWith(`${origin}/embed/`));
  for (;;) {
    const found = find();
    if (found !== undefined) return found;
    await page.waitForEvent('framenavigated');
  }
}
