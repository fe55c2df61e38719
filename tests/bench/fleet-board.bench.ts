import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { Page } from 'playwright-core';
import { EventWriter } from '../support/event-writer';
import { live } from '../support/transcript-page';
import { type OwnVisit, visitOwn } from '../support/visit';
import { firstPaint, traceMainThread } from './page-timing';
import { note, report } from './report';

/** Board and inbox of 1,000 agents with 10,000 sessions in Chromium while the fleet changes. */
const AGENTS = 1_000;
const SESSIONS_EACH = 10;
const CHANGES_PER_SECOND = 200;
const CHANGING_MS = 10_000;
const PAINT_RUNS = 5;

const site: OwnVisit = await visitOwn();
try {
  // tsx injects a helper into functions that pages lack
  await site.context.addInitScript('globalThis.__name ??= (value) => value');
  const agents = Array.from({ length: AGENTS }, (_, index) => new EventWriter(site.server, `runner-${index}`));
  for (const [index, agent] of agents.entries()) {
    await agent.writeMany(Array.from({ length: SESSIONS_EACH }, (_, of) => sessionOf(index, of)));
  }
  for (const [path, row] of [
    ['/agents', '[role=row] a'],
    ['/inbox', '[data-inbox-row]'],
  ] as const) {
    const paints: number[] = [];
    for (let run = 0; run < PAINT_RUNS; run += 1)
      paints.push(await firstPaint(site.context, `${site.server.url}${path}`, row));
    paints.sort((a, b) => a - b);
    report(`${path}: first paint of its rows`, paints[PAINT_RUNS >> 1] ?? Number.NaN, 'ms', { atMost: 1_000 });
    const page = await site.open(path);
    await live(page);
    await page.locator(row).first().waitFor();
    await settled(page);
    let rate = 0;
    const thread = await traceMainThread(page, async () => {
      rate = await change(agents);
    });
    report(`${path}: changes received`, rate, '/s', { atLeast: CHANGES_PER_SECOND * 0.9 });
    note(`${path}: longest task, wall clock`, thread.longestMs, 'ms');
    report(`${path}: longest task at ${CHANGES_PER_SECOND} changes/s`, thread.longestCpuMs, 'ms', { atMost: 50 });
    await page.close();
  }
  if (site.complaints.length > 0) throw new Error(site.complaints.join('\n'));
} finally {
  await site.close();
}

/** Of ten sessions, one waits for a permission, one has failed, and the others are idle. */
function sessionOf(agent: number, of: number): { sessionId: string; events: AgUiEvent[] } {
  const sessionId = `s-${agent}-${of}`;
  const starts: AgUiEvent = { type: 'RUN_STARTED', threadId: sessionId, runId: 'r' };
  const value = {
    request_id: 'q',
    kind: 'permission',
    tool_name: 'Bash',
    title: `Deploy ${agent}`,
    input: { command: 'make' },
  };
  if (of === 0) return { sessionId, events: [starts, { type: 'CUSTOM', name: 'request:opened', value }] };
  if (of === 1)
    return {
      sessionId,
      events: [starts, { type: 'RUN_ERROR', threadId: sessionId, runId: 'r', message: 'No credit' }],
    };
  return { sessionId, events: [starts, { type: 'RUN_FINISHED', threadId: sessionId, runId: 'r' }] };
}

/** Resolves once the page has loaded the rows after the first ones. */
async function settled(page: Page): Promise<void> {
  await page.waitForLoadState('networkidle').catch(() => {});
  await page.getByText(/^Loading the other agents/).waitFor({ state: 'detached' });
}

/** Starts and ends turns and requests across the fleet. @returns changes per second */
async function change(agents: readonly EventWriter[]): Promise<number> {
  const startedAt = performance.now();
  const elapsed = () => performance.now() - startedAt;
  let sent = 0;
  const worker = async (first: number) => {
    for (let index = first; elapsed() < CHANGING_MS; index += 4) {
      if (sent > (elapsed() * CHANGES_PER_SECOND) / 1_000) {
        await new Promise((resolve) => setTimeout(resolve, 5));
        index -= 4;
        continue;
      }
      sent += 4;
      const agent = index % agents.length;
      const runId = `later-${index}`;
      const ask = {
        request_id: runId,
        kind: 'permission',
        tool_name: 'Bash',
        title: `Later ${index}`,
        input: { command: 'ls' },
      };
      await agents[agent]?.write(`s-${agent}-${2 + (index % 8)}`, [
        { type: 'RUN_STARTED', threadId: 's', runId },
        { type: 'CUSTOM', name: 'request:opened', value: ask },
      ]);
      await agents[agent]?.write(`s-${agent}-${2 + (index % 8)}`, [
        { type: 'CUSTOM', name: 'request:resolved', value: { request_id: runId, outcome: 'allowed' } },
        { type: 'RUN_FINISHED', threadId: 's', runId },
      ]);
    }
  };
  await Promise.all([0, 1, 2, 3].map(worker));
  return (sent * 1_000) / elapsed();
}
