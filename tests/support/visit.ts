import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, inject } from 'vitest';
import { type LiveServer, type LiveServerOptions, startLiveServer } from './live-server';
import { chromiumPath } from './programs.mjs';
import type { SharedDashboard } from './shared-dashboards';
import { WAIT_MS } from './timeouts';
import { live } from './transcript-page';

/** A dashboard started with `npm start`, and a browser. */
export interface Visit<Server = SharedDashboard> {
  server: Server;
  context: BrowserContext;
  /**
   * Errors that no page may cause: console errors (including CSP violations), uncaught exceptions, dialogs, crashes,
   * and requests to another host or outside the base path.
   */
  complaints: string[];
  /**
   * Opens a path by an in-app link in the tab last returned by `leave`, or loads it in a new tab. On the shared
   * dashboard, resolves once the page is live, because hydration may replace server-rendered elements before that.
   */
  open(path: string): Promise<Page>;
  /** Loads the path in a new tab, as a bookmark does. */
  load(path: string): Promise<Page>;
  /** Resets a tab (size, media, routes, focus) for the next `open`; closes it if its session list is filtered. */
  leave(page: Page): Promise<void>;
  /** GETs a read model below /api/v1 with the bearer token. */
  read<Body>(path: string): Promise<Body>;
  close(): Promise<void>;
}

export type OwnVisit<Between = undefined> = Visit<LiveServer> & { proxy: Between };

interface VisitOptions<Between> extends LiveServerOptions {
  chromium?: Parameters<typeof openProfile>[0];
  signedIn?: boolean;
  /** Proxy between browser and server. Closed after the browser. */
  proxy?: (server: LiveServer) => Promise<Between>;
}

/** Console errors of requests that a killed server or a cut connection fails. */
export const CUT_REQUESTS =
  /ERR_(CONNECTION_(REFUSED|RESET)|EMPTY_RESPONSE|SOCKET_NOT_CONNECTED|INCOMPLETE_CHUNKED_ENCODING|INTERNET_DISCONNECTED)/;

/** This worker's browser context and its spare tab. */
let shared: Promise<{ context: BrowserContext; complaints: string[]; spare: { page: Page | null } }> | null = null;

/**
 * Returns the worker's shared dashboard and signed-in browser, which saves a start per file. Agents and sessions need
 * ids unique across files, and lists also show other files' rows.
 */
export async function visit(): Promise<Visit> {
  const server = sharedDashboard();
  shared ??= openShared(server);
  const { context, complaints, spare } = await shared;
  complaints.length = 0;
  const own = tabs(context, server.url, spare);
  return {
    server,
    context,
    complaints,
    ...own,
    open: async (path) => {
      const page = await own.open(path);
      await live(page);
      return page;
    },
    read: (path) => readModel(server, path),
    close: async () => {
      const last = own.opened.at(-1) ?? spare.page;
      // Clears this file's settings and drafts.
      if (last && !last.isClosed()) await last.evaluate(clearSettings).catch(() => {});
      await own.closeAll();
    },
  };
}

/** The dashboard that all files of this worker share. */
export function sharedDashboard(): SharedDashboard {
  const server = inject('dashboards')[Number(process.env.VITEST_POOL_ID) - 1];
  if (server === undefined) throw new Error('no shared dashboard for this worker: is the globalSetup missing?');
  return server;
}

/** Clears local storage except the user, whose absence would make a page reload. */
export function clearSettings(): void {
  for (const key of Object.keys(localStorage)) if (!key.endsWith(':current')) localStorage.removeItem(key);
}

async function openShared(server: SharedDashboard) {
  const { context } = await openProfile();
  const complaints: string[] = [];
  listen(context, server.url, complaints);
  await signIn(context, server.url, server.token);
  return { context, complaints, spare: { page: null } };
}

/** Starts a dashboard and browser for this file alone. */
export async function visitOwn<Between extends { origin: string; close(): unknown } | undefined = undefined>(
  options: VisitOptions<Between> = {},
): Promise<OwnVisit<Between>> {
  const { chromium, signedIn = true, proxy: proxyTo, ...serverOptions } = options;
  const server = await startLiveServer(serverOptions);
  let browser: ChromiumProfile;
  try {
    browser = await openProfile(chromium);
  } catch (error) {
    await server.stop();
    throw error;
  }
  const { context } = browser;
  const proxy = await proxyTo?.(server);
  const origin = proxy?.origin ?? server.url;
  const complaints: string[] = [];
  listen(context, origin, complaints);
  if (signedIn) await signIn(context, origin, server.token);
  return {
    server,
    context,
    complaints,
    proxy: proxy as Between,
    ...tabs(context, origin, { page: null }, chromium?.viewport ?? WINDOW),
    read: (path) => readModel(server, path),
    async close() {
      await browser.close();
      await proxy?.close();
      await server.stop();
    },
  };
}

/** `spare.page` is the tab for the next `open`. */
function tabs(context: BrowserContext, origin: string, spare: { page: Page | null }, window = WINDOW) {
  const opened: Page[] = [];
  const load = async (path: string): Promise<Page> => {
    const page = await context.newPage();
    opened.push(page);
    await page.goto(`${origin}${path}`);
    return page;
  };
  return {
    opened,
    load,
    async open(path: string): Promise<Page> {
      const { page } = spare;
      spare.page = null;
      if (page === null || page.isClosed()) return load(path);
      const target = `${origin}${path}`;
      const [from, to] = [new URL(page.url()), new URL(target)];
      if (from.hash !== '' || to.hash !== '') {
        // With a hash the browser would only scroll, and the router keeps the page's initial hash.
        await page.close();
        return load(path);
      }
      // A link to the current page would keep its state. Lists keep their filters across pages regardless of a link's
      // URL.
      if (from.search !== '' || to.search !== '' || from.href === to.href) await page.goto(target);
      else await follow(page, target);
      return page;
    },
    async leave(page: Page): Promise<void> {
      // The list of sessions keeps its filter on the following pages.
      if (await isListFiltered(page)) return page.close();
      await page.unrouteAll();
      await page.setViewportSize(window);
      await page.emulateMedia({ colorScheme: null, reducedMotion: 'reduce' });
      await page.mouse.move(0, 0);
      // A focused row would freeze its list's order on the next page too.
      await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
      if (spare.page !== null && spare.page !== page) await spare.page.close();
      spare.page = page;
    },
    async closeAll(): Promise<void> {
      for (const page of opened.splice(0)) if (page !== spare.page) await page.close();
    },
  };
}

function isListFiltered(page: Page): Promise<boolean> {
  return page.getByRole('navigation', { name: 'Sessions', includeHidden: true }).evaluateAll((lists) =>
    lists.some((list) => {
      const text = list.querySelector<HTMLInputElement>('input[type=search]')?.value ?? '';
      return text !== '' || list.querySelector('input:checked, [aria-label$="show all agents"]') !== null;
    }),
  );
}

/** Follows an in-app link. Resolves once URL and content have changed. */
async function follow(page: Page, target: string): Promise<void> {
  await page.evaluate((href) => {
    const { router } = (window as unknown as { next: { router: { push(href: string): void } } }).next;
    router.push(href);
  }, target);
  await page.waitForURL(target);
}

/**
 * Opens a visit for a file's tests and closes it after them, asserting that no complaint is left.
 *
 * @param begin `visit`, or `visitOwn` with options
 * @param expected complaints that the tests cause on purpose
 * @returns filled in once the first test or a later `beforeAll` runs
 */
export function perFile<Kind extends Visit<unknown>>(begin: () => Promise<Kind>, expected?: RegExp): Kind {
  const site = {} as Kind;
  beforeAll(async () => {
    Object.assign(site, await begin());
  });
  afterAll(async () => {
    await site.close();
    expect(site.complaints.filter((complaint) => !expected?.test(complaint))).toEqual([]);
  });
  return site;
}

async function readModel<Body>(server: { url: string; token: string }, path: string): Promise<Body> {
  const response = await fetch(`${server.url}/api/v1${path}`, { headers: { authorization: `Bearer ${server.token}` } });
  if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
  return (await response.json()) as Body;
}

async function signIn(context: BrowserContext, origin: string, token: string): Promise<void> {
  const link = `${origin}/sign-in?token=${encodeURIComponent(token)}`;
  const response = await context.request.get(link, { maxRedirects: 0 });
  if (response.status() !== 303) throw new Error(`the sign-in link returned ${response.status()}`);
}

function listen(context: BrowserContext, origin: string, complaints: string[]): void {
  // the server's own origin, used for sign-in
  const isOwn = ({ href }: URL) =>
    [href, href.replace(/\/\/interlude-\w+\.localhost/, '//127.0.0.1')].some(
      (each) => each.startsWith(origin) && /^([/?#]|$)/.test(each.slice(origin.length)),
    );
  context.on('console', (message) => {
    if (message.type() === 'error') complaints.push(`console: ${message.text()} (${message.location().url})`);
  });
  context.on('weberror', (error) => {
    complaints.push(`exception: ${String(error.error())}`);
  });
  context.on('dialog', (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  context.on('request', (request) => {
    const url = new URL(request.url());
    if (/^https?:$/.test(url.protocol) && !isOwn(url)) complaints.push(`request: ${url.href}`);
  });
  context.on('page', (page) => {
    page.on('crash', () => complaints.push(`crash: ${page.url()}`));
  });
}

export interface ChromiumProfile {
  context: BrowserContext;
  close: () => Promise<void>;
}

/** Disables features that use the network, prompt the user or need a device. */
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Default window size. */
const WINDOW = { width: 1280, height: 800 };

/** Shared by all tests of this process. Playwright closes it at exit. */
let browser: Promise<Browser> | null = null;

/** Opens Chromium with an empty, isolated profile. Tabs of one profile share SharedWorkers, as a user's do. */
export async function openProfile(options: Parameters<Browser['newContext']>[0] = {}): Promise<ChromiumProfile> {
  browser ??= launch();
  const running = await browser;
  // a test may have closed it
  if (!running.isConnected()) browser = launch();
  // Animations take a fifth of a CPU per tab, and tests ignore them.
  const still = { viewport: WINDOW, reducedMotion: 'reduce' as const };
  const context = await (await browser).newContext({ ...still, ...options });
  context.setDefaultTimeout(WAIT_MS);
  return { context, close: () => context.close() };
}

function launch(): Promise<Browser> {
  const executablePath = chromiumPath();
  if (!executablePath) throw new Error('Chromium not found. Run "npm test" to install it, or set CHROMIUM_PATH.');
  return chromium.launch({ headless: true, executablePath, args: ARGS });
}
