import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import puppeteer from 'puppeteer-core';
import { vi } from 'vitest';
import { killOnExit } from './kill-on-exit.mjs';
import { chromiumPath, ensureDebianProgram } from './programs.mjs';
import { reservePort } from './reserve-port.mjs';

interface Point {
  x: number;
  y: number;
}

/** A browser with one tab, driven by real input. Arguments and results of scripts are JSON. */
export interface Tab {
  goTo(url: string): Promise<void>;
  run<Args extends unknown[], Result>(script: (...args: Args) => Result, ...args: Args): Promise<Result>;
  click(at: Point): Promise<void>;
  wheel(at: Point, deltaY: number): Promise<void>;
  type(text: string): Promise<void>;
  close(): Promise<void>;
  /** Console errors and uncaught exceptions. WebKit’s driver reports none. */
  readonly complaints: string[];
}

/** WebDriver’s code of the Enter key. */
export const ENTER = '\uE007';

type Found = ReturnType<typeof ensureDebianProgram>;

const WINDOW = { width: 1280, height: 800 };
/** A person's click takes a tenth of a second. */
const CLICK_MS = 100;

const chromium = chromiumPath();

interface Engine {
  engine: string;
  needs: Found[];
  start: (...programs: string[]) => Promise<Tab>;
  /** Resolves names below `localhost`. */
  usesLocalName: boolean;
}

/** The other browser tests run in Chromium alone. */
export const ENGINES: readonly Engine[] = [
  {
    engine: 'Chromium',
    needs: [chromium === null ? { missing: 'Chromium is not installed' } : { program: chromium }],
    start: (program) => startWithPuppeteer('chrome', program, ['--no-sandbox']),
    usesLocalName: true,
  },
  {
    engine: 'Firefox',
    needs: [ensureDebianProgram('firefox-esr')],
    start: (program) => startWithPuppeteer('firefox', program, []),
    usesLocalName: true,
  },
  {
    engine: 'WebKit',
    needs: [ensureDebianProgram('WebKitWebDriver', 'webkit2gtk-driver'), ensureDebianProgram('Xvfb', 'xvfb')],
    start: startWebKit,
    usesLocalName: false,
  },
];

async function startWithPuppeteer(browser: 'chrome' | 'firefox', executablePath = '', args: string[]): Promise<Tab> {
  const protocol = 'webDriverBiDi';
  const running = await puppeteer.launch({ browser, protocol, executablePath, args, defaultViewport: WINDOW });
  const page = await running.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text());
  });
  return {
    goTo: async (url) => void (await page.goto(url)),
    run: (script, ...args) => page.evaluate(script as never, ...args),
    click: ({ x, y }) => page.mouse.click(x, y, { delay: CLICK_MS }),
    async wheel({ x, y }, deltaY) {
      await page.mouse.move(x, y);
      await page.mouse.wheel({ deltaY });
    },
    type: (text) => page.keyboard.type(text),
    close: () => running.close(),
    complaints,
  };
}

/** Drives WebKitGTK's MiniBrowser by WebDriver. It has no headless mode, so it gets its own virtual display. */
async function startWebKit(driver = '', xvfb = ''): Promise<Tab> {
  const stdio = ['ignore', 'ignore', 'ignore', 'pipe'] as const;
  const screen = killOnExit(spawn(xvfb, ['-displayfd', '3', '-screen', '0', '1600x1200x24'], { stdio: [...stdio] }));
  const [display] = await once(screen.stdio[3] as NodeJS.ReadableStream, 'data');
  const port = await reservePort();
  const env = { ...process.env, DISPLAY: `:${String(display).trim()}` };
  const server = killOnExit(spawn(driver, [`--port=${port}`], { env, stdio: 'ignore' }));
  const send = async (method: string, path: string, body?: object) => {
    const sent = body && { body: JSON.stringify(body) };
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, ...sent });
    const { value } = (await response.json()) as { value: never };
    if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(value)}`);
    return value;
  };
  await vi.waitFor(() => send('GET', '/status'));
  const { sessionId } = await send('POST', '/session', { capabilities: {} });
  const post = (path: string, body: object) => send('POST', `/session/${sessionId}/${path}`, body);
  // A new device for each input: WebKit subtracts a wheel's previous scroll from its next one.
  const act = (type: string, ...actions: object[]) =>
    post('actions', { actions: [{ type, id: randomUUID(), actions }] });
  await post('window/rect', { x: 0, y: 0, ...WINDOW });
  return {
    goTo: (url) => post('url', { url }),
    run: (script, ...args) => post('execute/sync', { script: `return (${script})(...arguments)`, args }),
    click: (at) =>
      act(
        'pointer',
        { type: 'pointerMove', ...at },
        { type: 'pointerDown', button: 0 },
        { type: 'pause', duration: CLICK_MS },
        { type: 'pointerUp', button: 0 },
      ),
    wheel: (at, deltaY) => act('wheel', { type: 'scroll', ...at, deltaX: 0, deltaY }),
    type: (text) => act('key', ...[...text].flatMap((value) => ['keyDown', 'keyUp'].map((type) => ({ type, value })))),
    async close() {
      await send('DELETE', `/session/${sessionId}`);
      const gone = [server, screen].map((child) => once(child, 'exit'));
      for (const child of [server, screen]) child.kill();
      await Promise.all(gone);
    },
    complaints: [],
  };
}
