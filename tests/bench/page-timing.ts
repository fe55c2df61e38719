import type { BrowserContext, Page } from 'playwright-core';

/** A page's main-thread tasks during some work, in milliseconds. */
export interface MainThread {
  /** Longest task by wall clock: the user's wait. */
  longestMs: number;
  /** Longest task by CPU time: the page's own share under other load. */
  longestCpuMs: number;
  /** Number of tasks over 50 ms by wall clock. */
  longTasks: number;
}

interface TraceEvent {
  name: string;
  ph: string;
  pid: number;
  tid: number;
  /** Microseconds by wall clock, and CPU time. */
  dur?: number;
  tdur?: number;
  args?: { name?: string };
}

/** Uses Chromium's trace, which unlike the Long Tasks API includes tasks under 50 ms. */
export async function traceMainThread(page: Page, work: () => Promise<void>): Promise<MainThread> {
  const client = await page.context().newCDPSession(page);
  const events: TraceEvent[] = [];
  client.on('Tracing.dataCollected', ({ value }) => {
    for (const event of value as unknown as TraceEvent[]) events.push(event);
  });
  await client.send('Tracing.start', {
    transferMode: 'ReportEvents',
    traceConfig: { includedCategories: ['toplevel'], excludedCategories: ['*'] },
  });
  await work();
  const complete = new Promise((resolve) => client.once('Tracing.tracingComplete', resolve));
  await client.send('Tracing.end');
  await complete;
  await client.detach();
  const mains = new Set(
    events.filter(({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain').map(threadOf),
  );
  const tasks = events.filter((event) => event.ph === 'X' && /RunTask$/.test(event.name) && mains.has(threadOf(event)));
  if (tasks.length === 0) throw new Error('the trace contains no task of the page');
  const longest = (times: number[]) => times.reduce((most, time) => Math.max(most, time), 0) / 1_000;
  return {
    longestMs: longest(tasks.map(({ dur = 0 }) => dur)),
    longestCpuMs: longest(tasks.map(({ tdur = 0 }) => tdur)),
    longTasks: tasks.filter(({ name, dur = 0 }) => name === 'ThreadControllerImpl::RunTask' && dur > 50_000).length,
  };
}

function threadOf({ pid, tid }: TraceEvent): string {
  return `${pid}:${tid}`;
}

/** Milliseconds from the start of a navigation. */
export interface FirstPaints {
  /** Any text or image. */
  contentful: number;
  /** The awaited element. */
  shown: number;
}

/**
 * @param selector the awaited element: the first match that ends with `text`
 * @param options.isCold true to bypass the browser's cache
 */
export async function firstPaints(
  context: BrowserContext,
  url: string,
  selector: string,
  { text = '', isCold = false } = {},
): Promise<FirstPaints> {
  const page = await context.newPage();
  if (isCold) await (await context.newCDPSession(page)).send('Network.setCacheDisabled', { cacheDisabled: true });
  await page.addInitScript(
    ([selector, text]) => {
      const isThere = () => {
        const all = [...document.querySelectorAll(selector)];
        const found = all.find((one) => one.textContent?.endsWith(text))?.getBoundingClientRect();
        return found !== undefined && found.bottom > 0 && found.top < innerHeight;
      };
      const look = () => {
        if (!isThere()) {
          requestAnimationFrame(look);
          return;
        }
        // runs after a frame's callbacks and paint
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => Object.assign(window, { paintedAt: performance.now() });
        port2.postMessage(null);
      };
      requestAnimationFrame(look);
    },
    [selector, text] as const,
  );
  await page.goto(url);
  const painted = await page.waitForFunction(() => {
    const { paintedAt: shown } = window as { paintedAt?: number };
    const contentful = performance.getEntriesByName('first-contentful-paint')[0]?.startTime;
    return shown !== undefined && contentful !== undefined && { shown, contentful };
  });
  const paints = (await painted.jsonValue()) as FirstPaints;
  await page.close();
  return paints;
}

/**
 * Event Timing: milliseconds from each key press or click to the next paint, in steps of 8. Interactions below 16 ms
 * are reported as 8.
 *
 * @returns ends the observation
 */
export async function observeInteractions(page: Page): Promise<() => Promise<number[]>> {
  await page.evaluate(() => {
    const slowest = new Map<number, number>();
    const before = performance.interactionCount;
    const observer = new PerformanceObserver((list) => {
      for (const { interactionId, duration } of list.getEntries() as PerformanceEventTiming[])
        if (interactionId > 0) slowest.set(interactionId, Math.max(duration, slowest.get(interactionId) ?? 0));
    });
    observer.observe({ type: 'event', durationThreshold: 16 } as PerformanceObserverInit);
    const interactions = () => {
      const fast = Math.max(0, performance.interactionCount - before - slowest.size);
      return [...slowest.values(), ...Array.from({ length: fast }, () => 8)];
    };
    Object.assign(window, { interactions });
  });
  return () => page.evaluate(() => (window as unknown as { interactions: () => number[] }).interactions());
}
