import type { BrowserContext, Page } from 'playwright-core';
import { type ChromiumProfile, openProfile } from './chromium';
import { type LiveServer, type LiveServerOptions, startLiveServer } from './live-server';

/** A dashboard as a user starts it, and a browser before it. */
export interface Visit {
  server: LiveServer;
  context: BrowserContext;
  /**
   * What no page may ever give rise to: an error on its console (a breach of the content policy is one), an exception
   * nobody caught, a dialog, a crash, a request to another
   * host, or out of the path that the server is beneath.
   */
  complaints: string[];
  /** A new tab at this path. The browser is signed in, unless it was asked not to be. */
  open(path: string): Promise<Page>;
  /** GET of a read model, below /api/v1, with the bearer token. */
  read<Body>(path: string): Promise<Body>;
  close(): Promise<void>;
}

export interface VisitOptions extends LiveServerOptions {
  chromium?: Parameters<typeof openProfile>[0];
  signedIn?: boolean;
  /** Where the browser finds the server, when something stands in between. */
  origin?: (server: LiveServer) => Promise<string>;
}

export async function visit(options: VisitOptions = {}): Promise<Visit> {
  const { chromium, signedIn = true, origin: originOf, ...serverOptions } = options;
  const server = await startLiveServer(serverOptions);
  let browser: ChromiumProfile;
  try {
    browser = await openProfile(chromium);
  } catch (error) {
    await server.stop();
    throw error;
  }
  const { context } = browser;
  const origin = (await originOf?.(server)) ?? server.url;
  const complaints: string[] = [];
  listen(context, origin, complaints);
  if (signedIn) await signIn(context, origin, server.token);
  return {
    server,
    context,
    complaints,
    async open(path) {
      const page = await context.newPage();
      await page.goto(`${origin}${path}`);
      return page;
    },
    read: (path) => readModel(server, path),
    async close() {
      await browser.close();
      await server.stop();
    },
  };
}

export async function readModel<Body>(server: { url: string; token: string }, path: string): Promise<Body> {
  const response = await fetch(`${server.url}/api/v1${path}`, { headers: { authorization: `Bearer ${server.token}` } });
  if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
  return (await response.json()) as Body;
}

async function signIn(context: BrowserContext, origin: string, token: string): Promise<void> {
  const link = `${origin}/sign-in?token=${encodeURIComponent(token)}`;
  const response = await context.request.get(link, { maxRedirects: 0 });
  if (response.status() !== 303) throw new Error(`the sign-in link is answered with ${response.status()}`);
}

function listen(context: BrowserContext, origin: string, complaints: string[]): void {
  // the server's own name, under which browsers sign in
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
