import type { Page } from 'playwright-core';
import { EventWriter } from '../support/event-writer';
import { live } from '../support/transcript-page';
import { type OwnVisit, visitOwn } from '../support/visit';
import { type FirstPaints, firstPaints, type MainThread, observeInteractions, traceMainThread } from './page-timing';
import { median, note, report } from './report';
import { longSession } from './workload';

/** A session of 10,000 turns in Chromium with `npm start`. Each figure is a median of runs. */
const TURNS = 10_000;
const RUNS = 3;
const PAINT_RUNS = 5;
const NEWEST_TURN = `[role=log] [data-turn="turn${TURNS - 1}"]`;
const SCROLLED_TURNS = 3_000;
const DELTAS_PER_SECOND = 500;
const STREAMED_MS = 8_000;

const site: OwnVisit = await visitOwn();
try {
  // tsx injects a helper into functions that pages lack
  await site.context.addInitScript('globalThis.__name ??= (value) => value');
  const agent = new EventWriter(site.server, 'long-runner');
  await agent.write('long', [...longSession(TURNS)], { stepMs: 20 });

  for (const cache of ['cold', 'warm']) {
    const empty: FirstPaints[] = [];
    const paints: FirstPaints[] = [];
    for (let run = 0; run < PAINT_RUNS; run += 1) {
      const options = { isCold: cache === 'cold' };
      empty.push(await firstPaints(site.context, `${site.server.url}/signed-out`, 'main', options));
      paints.push(await firstPaints(site.context, `${site.server.url}/sessions/long`, NEWEST_TURN, options));
    }
    const what = `browser: ${TURNS} turns, ${cache} cache`;
    note(`browser: first paint of a small page, ${cache} cache`, median(empty.map(({ shown }) => shown)), 'ms');
    report(`${what}: first contentful paint`, median(paints.map(({ contentful }) => contentful)), 'ms', {
      atMost: 400,
    });
    report(`${what}: first paint of the transcript`, median(paints.map(({ shown }) => shown)), 'ms', { atMost: 400 });
  }

  const scrolls: MainThread[] = [];
  for (let run = 0; run < RUNS; run += 1) scrolls.push(await scrollUp());
  reportTasks(`while ${SCROLLED_TURNS} turns scroll by`, scrolls);

  const streams: Stream[] = [];
  for (let run = 0; run < RUNS; run += 1) streams.push(await streamInto(agent, run));
  note('browser: streamed into the open page', median(streams.map(({ rate }) => rate)), 'deltas/s');
  reportTasks(`at ${DELTAS_PER_SECOND} deltas/s`, streams);
  const slowest = streams.map(({ inputs }) => Math.max(...inputs));
  report(`browser: slowest key or click to paint at ${DELTAS_PER_SECOND} deltas/s`, median(slowest), 'ms', {
    atMost: 100,
  });
  if (site.complaints.length > 0) throw new Error(site.complaints.join('\n'));
} finally {
  await site.close();
}

interface Stream extends MainThread {
  rate: number;
  /** Milliseconds from each key press or click to the next paint. */
  inputs: number[];
}

function scrollUp(): Promise<MainThread> {
  return withOpenPage(async (page) => {
    await page.mouse.move(640, 400);
    return traceMainThread(page, async () => {
      for (let turns = 0; turns < SCROLLED_TURNS; ) {
        await page.mouse.wheel(0, -1_200);
        turns = TURNS - 1 - (await topmostTurn(page));
      }
    });
  });
}

/** The topmost turn two frames later. A minimal query, because only the page's own work should be measured. */
function topmostTurn(page: Page): Promise<number> {
  return page.evaluate(async () => {
    await new Promise((resolve) => requestAnimationFrame(resolve));
    const turns = [...document.querySelectorAll<HTMLElement>('[data-turn]')];
    const first = turns.find((turn) => turn.getBoundingClientRect().bottom > 100);
    return Number(first?.dataset.turn?.slice('turn'.length));
  });
}

function streamInto(agent: EventWriter, run: number): Promise<Stream> {
  return withOpenPage(async (page) => {
    const interactions = await observeInteractions(page);
    const runId = `stream${run}`;
    await agent.write('long', [{ type: 'RUN_STARTED', threadId: 's', runId }]);
    let rate = 0;
    const thread = await traceMainThread(page, async () => {
      let isOver = false;
      const pressed = pressKeys(page, () => isOver);
      rate = await stream(agent, runId);
      isOver = true;
      await pressed;
    });
    await agent.write('long', [{ type: 'RUN_FINISHED', threadId: 's', runId }]);
    return { ...thread, rate, inputs: await interactions() };
  });
}

/** @returns deltas sent per second */
async function stream(agent: EventWriter, runId: string): Promise<number> {
  const startedAt = performance.now();
  const elapsed = () => performance.now() - startedAt;
  let sent = 0;
  for (let part = 0; elapsed() < STREAMED_MS; part += 1) {
    const messageId = `${runId}/m${part}`;
    await agent.write('long', [{ type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' }]);
    // a new message after a thousand deltas
    for (let delta = 0; delta < 1_000 && elapsed() < STREAMED_MS; ) {
      const due = Math.ceil((elapsed() * DELTAS_PER_SECOND) / 1_000) - sent;
      const batch = Array.from({ length: Math.max(0, due) }, () => ({
        type: 'TEXT_MESSAGE_CONTENT',
        messageId,
        delta: delta++ % 40 === 39 ? '\n\n- **and** `then` ' : 'some words ',
      }));
      if (due > 0) await agent.write('long', batch);
      sent += batch.length;
      await new Promise((resolve) => setTimeout(resolve, 15));
    }
    await agent.write('long', [{ type: 'TEXT_MESSAGE_END', messageId }]);
  }
  return (sent * 1_000) / elapsed();
}

/** Toggles the shortcut list by key and clicks the search field while the stream runs. */
async function pressKeys(page: Page, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    await page.keyboard.press('?');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await page.getByRole('searchbox').click();
    await page.keyboard.press('Escape');
    await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 150)));
  }
}

async function withOpenPage<Result>(measure: (page: Page) => Promise<Result>): Promise<Result> {
  const page = await site.context.newPage();
  await page.goto(`${site.server.url}/sessions/long`);
  await live(page);
  // excludes the page's start
  await page.evaluate(() => new Promise<void>((resolve) => requestIdleCallback(() => resolve())));
  const result = await measure(page);
  await page.close();
  return result;
}

function reportTasks(when: string, runs: MainThread[]): void {
  note(`browser: tasks over 50 ms ${when}`, median(runs.map(({ longTasks }) => longTasks)), '');
  note(`browser: longest task ${when}, CPU`, median(runs.map((run) => run.longestCpuMs)), 'ms');
  report(`browser: longest task ${when}`, median(runs.map(({ longestMs }) => longestMs)), 'ms', { atMost: 50 });
}
