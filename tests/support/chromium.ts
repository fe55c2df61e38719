import { type Browser, type BrowserContext, chromium } from 'playwright-core';
import { chromiumPath } from './chromium-path.mjs';
import { WAIT_MS } from './patience';

export interface ChromiumProfile {
  context: BrowserContext;
  close: () => Promise<void>;
}

/** What would talk to the network, ask the user, or need a device. */
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

/** The window that a tab has unless its test sets another. */
export const WINDOW = { width: 1280, height: 800 };

/** One for all tests of this process, which Playwright ends with it. */
let browser: Promise<Browser> | null = null;

/**
 * The machine's own Chromium with an empty profile, which shares nothing with others. Tabs of one profile share their
 * SharedWorkers, as a user's do.
 */
export async function openProfile(options: Parameters<Browser['newContext']>[0] = {}): Promise<ChromiumProfile> {
  browser ??= launch();
  const running = await browser;
  // a test may have ended it
  if (!running.isConnected()) browser = launch();
  // What moves takes a fifth of a processor for each tab, and none of it is looked at.
  const still = { viewport: WINDOW, reducedMotion: 'reduce' as const };
  const context = await (await browser).newContext({ ...still, ...options });
  context.setDefaultTimeout(WAIT_MS);
  return { context, close: () => context.close() };
}

function launch(): Promise<Browser> {
  const executablePath = chromiumPath();
  if (!executablePath)
    throw new Error('there is no Chromium; "npm test" installs it, or name yours with CHROMIUM_PATH');
  return chromium.launch({ headless: true, executablePath, args: ARGS });
}
