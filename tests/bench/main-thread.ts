import type { Page } from 'playwright-core';

/** The tasks of a page's main thread while some work was done, in milliseconds. */
export interface MainThread {
  /** The longest by the clock: what a user waits. */
  longestMs: number;
  /** The longest by the time the processor gave to it: what is ours, when other programs want the machine too. */
  longestCpuMs: number;
  /** How many took longer than 50 ms by the clock. */
  longTasks: number;
}

interface TraceEvent {
  name: string;
  ph: string;
  pid: number;
  tid: number;
  /** Microseconds by the clock, and of them on the processor. */
  dur?: number;
  tdur?: number;
  args?: { name?: string };
}

/** Chromium's own account of its tasks, which knows those under 50 ms too, unlike the Long Tasks API. */
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
  if (tasks.length === 0) throw new Error('the trace has no task of the page');
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
