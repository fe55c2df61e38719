import type { Page } from 'playwright-core';
import { LogWriter } from '../support/log-writer';
import { live } from '../support/transcript-page';
import { type OwnVisit, visitOwn } from '../support/visit';
import { firstPaints, type MainThread, traceMainThread } from './page-timing';
import { median, note, report } from './report';

/** A log of a million lines in Chromium with `npm start`. Each figure is a median of runs. */
const LINES = 1_000_000;
const RUNS = 3;
const OPEN_RUNS = 5;
const LINES_PER_SECOND = 2_000;
const TAILED_MS = 8_000;

const site: OwnVisit = await visitOwn();
try {
  // tsx injects a helper into functions that pages lack
  await site.context.addInitScript('globalThis.__name ??= (value) => value');
  const agent = new LogWriter(site.server, 'writer');
  await agent.arrive();
  // this page receives all lines by stream, as in a day of tailing
  const full = await openLog();
  await agent.numbered(LINES);
  await lastLineIn(full, `line ${LINES}`);

  const fullTails: Tail[] = [];
  for (let run = 0; run < RUNS; run += 1) fullTails.push(await tail(agent, full));
  note('log viewer: heap of a page that received all lines', await heapOf(full), 'MiB');
  reportTails(' after all lines', fullTails);
  const [toFirst, toEnd] = [await keyTo(full, 'g', 'first'), await keyTo(full, 'G', 'last')];
  note('log viewer: after all lines, key g to oldest line', toFirst, 'ms');
  note('log viewer: after all lines, key G to newest line', toEnd, 'ms');
  await full.close();

  await agent.numbered(1, LINES);
  const openings: number[] = [];
  const url = `${site.server.url}/agents/writer/logs`;
  for (let run = 0; run < OPEN_RUNS; run += 1) {
    const { shown } = await firstPaints(site.context, url, '[role=log] [data-line]', { text: `line ${LINES}` });
    openings.push(shown);
  }
  report(`log viewer: ${LINES} lines: click to newest lines painted`, median(openings), 'ms', {
    atMost: 1_000,
  });

  const tails: Tail[] = [];
  for (let run = 0; run < RUNS; run += 1) {
    const page = await openLog();
    tails.push(await tail(agent, page));
    await page.close();
  }
  reportTails('', tails);
  if (site.complaints.length > 0) throw new Error(site.complaints.join('\n'));
} finally {
  await site.close();
}

interface Tail extends MainThread {
  rate: number;
  rows: number;
}

function reportTails(how: string, tails: readonly Tail[]): void {
  const name = (what: string) => `log viewer: ${what} at ${LINES_PER_SECOND} lines/s${how}`;
  note(name('lines received by the open page'), median(tails.map(({ rate }) => rate)), 'lines/s');
  note(name('maximum rendered rows'), median(tails.map(({ rows }) => rows)), '');
  note(name('tasks over 50 ms'), median(tails.map(({ longTasks }) => longTasks)), '');
  note(name('longest task, CPU'), median(tails.map(({ longestCpuMs }) => longestCpuMs)), 'ms');
  report(name('longest task'), median(tails.map(({ longestMs }) => longestMs)), 'ms', { atMost: 50 });
}

async function openLog(): Promise<Page> {
  const page = await site.context.newPage();
  await page.goto(`${site.server.url}/agents/writer/logs`);
  await live(page);
  return page;
}

function lastLineIn(page: Page, text: string): Promise<void> {
  const row = page.locator('[role=log] [data-line]').filter({ hasText: text }).last();
  return row.waitFor({ timeout: 120_000 });
}

async function heapOf(page: Page): Promise<number> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('HeapProfiler.collectGarbage');
  const { usedSize } = await devtools.send('Runtime.getHeapUsage');
  return usedSize / 1024 / 1024;
}

/** @returns ms from the key press until that end's line is visible */
function keyTo(page: Page, key: string, end: 'first' | 'last'): Promise<number> {
  return page.evaluate(
    async ([key, end]) => {
      const box = document.querySelector('[role=log]') as HTMLElement;
      const numbers = () =>
        [...box.querySelectorAll('[data-row]:has([data-line])')].map((row) => Number((row as HTMLElement).dataset.row));
      const isThere = () =>
        end === 'first'
          ? box.scrollTop === 0 && numbers()[0] === 0
          : [...box.querySelectorAll('[data-row]:has([data-line])')].some((row) => {
              const fromEnd = box.getBoundingClientRect().bottom - row.getBoundingClientRect().bottom;
              return Math.abs(fromEnd) < 20 && box.scrollHeight - box.scrollTop - box.clientHeight < 2;
            });
      const startedAt = performance.now();
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
      while (!isThere()) await new Promise((resolve) => requestAnimationFrame(resolve));
      return performance.now() - startedAt;
    },
    [key, end] as const,
  );
}

async function tail(agent: LogWriter, page: Page): Promise<Tail> {
  await page.bringToFront();
  // excludes the page's start
  await page.evaluate(() => new Promise<void>((resolve) => requestIdleCallback(() => resolve())));
  let [rate, rows] = [0, 0];
  const thread = await traceMainThread(page, async () => {
    rate = await write(agent, async () => {
      rows = Math.max(rows, await rowsOf(page));
    });
  });
  return { ...thread, rate, rows };
}

/** @returns lines written per second */
async function write(agent: LogWriter, look: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  const elapsed = () => performance.now() - startedAt;
  let written = 0;
  let looked = 0;
  while (elapsed() < TAILED_MS) {
    const due = Math.ceil((elapsed() * LINES_PER_SECOND) / 1_000) - written;
    if (due > 0) await agent.numbered(due, written);
    written += Math.max(0, due);
    if (elapsed() - looked > 1_000) {
      looked = elapsed();
      await look();
    }
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
  return (written * 1_000) / elapsed();
}

function rowsOf(page: Page): Promise<number> {
  return page.evaluate(() => document.querySelectorAll('[role=log] [data-line]').length);
}
