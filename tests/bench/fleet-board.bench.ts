import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { Page } from 'playwright-core';
import { EventWriter } from '../support/event-writer';
import { writeFleet } from '../support/fleet';
import type { LiveServer } from '../support/live-server';
import { live } from '../support/transcript-page';
import { type OwnVisit, visitOwn } from '../support/visit';
import { firstPaints, traceMainThread } from './page-timing';
import { median, note, report } from './report';
import { type ChangingAgent, changeSessions } from './workload';

/** Board and inbox in Chromium while the fleet changes: 40 agents with 300 sessions, and 1,000 with 10,000. */
const AGENTS = 1_000;
const SESSIONS_EACH = 10;
const CHANGES_PER_SECOND = 200;
const CHANGING_MS = 20_000;
const PAINT_RUNS = 5;

await measure('300 sessions', async (server) => {
  const fleet = await writeFleet(server, { longest: 0 });
  return fleet.map(({ writer, sessions }) => ({
    writer,
    sessionIds: sessions.filter(({ state }) => state !== 'needs-input' && state !== 'failed').map(({ id }) => id),
  }));
});
await measure('10,000 sessions', async (server) => {
  const agents: ChangingAgent[] = [];
  for (let agent = 0; agent < AGENTS; agent += 1) {
    const writer = new EventWriter(server, `runner-${agent}`);
    await writer.writeMany(Array.from({ length: SESSIONS_EACH }, (_, of) => sessionOf(agent, of)));
    const sessionIds = Array.from({ length: 8 }, (_, of) => `s-${agent}-${2 + of}`);
    agents.push({ writer, sessionIds });
  }
  return agents;
});

async function measure(fleet: string, write: (server: LiveServer) => Promise<ChangingAgent[]>): Promise<void> {
  const site: OwnVisit = await visitOwn();
  try {
    // tsx injects a helper into functions that pages lack
    await site.context.addInitScript('globalThis.__name ??= (value) => value');
    const agents = await write(site.server);
    for (const [path, row] of [
      ['/agents', '[role=row] a'],
      ['/inbox', '[data-inbox-row]'],
    ] as const) {
      const what = `${fleet}, ${path}`;
      const paints: number[] = [];
      for (let run = 0; run < PAINT_RUNS; run += 1)
        paints.push((await firstPaints(site.context, `${site.server.url}${path}`, row)).shown);
      report(`${what}: first paint of its rows`, median(paints), 'ms', { atMost: 1_000 });
      const page = await site.open(path);
      await live(page);
      await page.locator(row).first().waitFor();
      await settled(page);
      let rate = 0;
      const thread = await traceMainThread(page, async () => {
        rate = await changeSessions(agents, CHANGES_PER_SECOND, CHANGING_MS);
      });
      report(`${what}: changes received`, rate, '/s', { atLeast: CHANGES_PER_SECOND * 0.9 });
      note(`${what}: longest task, wall clock`, thread.longestMs, 'ms');
      note(`${what}: tasks over 50 ms, wall clock`, thread.longTasks, '');
      report(`${what}: longest task at ${CHANGES_PER_SECOND} changes/s`, thread.longestCpuMs, 'ms', { atMost: 50 });
      await page.close();
    }
    if (site.complaints.length > 0) throw new Error(site.complaints.join('\n'));
  } finally {
    await site.close();
  }
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
