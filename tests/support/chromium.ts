import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContext, chromium } from 'playwright-core';
import { chromiumPath } from './chromium-path.mjs';

export interface LaunchedChromium {
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

type ContextOptions = NonNullable<Parameters<typeof chromium.launchPersistentContext>[1]>;

/** The machine's own Chromium with an empty profile. Tabs of one context share their SharedWorkers, as a user's do. */
export async function launchChromium(options: ContextOptions = {}): Promise<LaunchedChromium> {
  const executablePath = chromiumPath();
  if (!executablePath)
    throw new Error('there is no Chromium; "npm test" installs it, or name yours with CHROMIUM_PATH');
  const profile = await mkdtemp(join(tmpdir(), 'interlude-chromium-'));
  const context = await chromium.launchPersistentContext(profile, {
    headless: true,
    viewport: { width: 1280, height: 800 },
    ...options,
    executablePath,
    args: [...ARGS, ...(options.args ?? [])],
  });
  return {
    context,
    async close() {
      await context.close();
      await rm(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
