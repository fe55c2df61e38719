import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AgentSummary } from '@/lib/protocol/read-models';
import { barriersInBothThemes } from '../support/barriers';
import { EventWriter } from '../support/event-writer';
import { press } from '../support/press';
import { live } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';

/** A fleet of a thousand agents before an operator. */
const AGENTS = 1_000;
let it: OwnVisit;

beforeAll(async () => {
  it = await visitOwn();
  const records = Array.from({ length: AGENTS }, (_, at) => ({
    seq: at + 1,
    kind: 'status',
    agentId: `runner-${at}`,
    sessionId: `of-${at}`,
    occurredAt: Date.now(),
    status: { kind: 'claude', host: `build-${at % 3}`, versions: { provider: `Claude Code 2.1.${at % 2}` } },
  }));
  const response = await fetch(`${it.server.url}/api/v1/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${it.server.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ producer: { id: 'seeder', epoch: 1 }, records }),
  });
  expect(response.status).toBe(200);
  await new EventWriter(it.server, 'runner-70').write('of-70', userTurn('r1', 'Build it', 'Built.'));
  const busy = new EventWriter(it.server, 'runner-7');
  await busy.write('second-of-7', [
    ...userTurn('r1', 'Watch the deployment', 'Watching.'),
    { type: 'RUN_STARTED', threadId: 'second-of-7', runId: 'r2' },
  ]);
});
afterAll(async () => {
  await it.close();
  // The agent at work is asked to retire, and refused.
  expect(it.complaints.filter((one) => !one.includes('409 (Conflict)'))).toEqual([]);
});

test('all of a thousand agents are sorted and filtered, by an address that finds the same again', async () => {
  const page = await it.open('/agents');
  await live(page);
  await page.getByText('1,000 agents, by name').waitFor();
  const heads = page.getByRole('rowheader');
  expect((await heads.first().textContent())?.startsWith('runner-0')).toBe(true);
  expect((await heads.nth(10).textContent())?.startsWith('runner-10')).toBe(true);
  const sorts = page.getByRole('columnheader', { name: 'Sessions' });
  await sorts.getByRole('button').click();
  await expect.poll(async () => (await heads.first().textContent())?.startsWith('runner-7')).toBe(true);
  expect(await sorts.getAttribute('aria-sort')).toBe('descending');
  await page.getByLabel('Host').selectOption('build-1');
  await page.getByText('333 of 1,000 agents, by sessions').waitFor();
  await page
    .getByRole('main')
    .getByRole('checkbox', { name: /^Working/ })
    .check({ force: true });
  await page.getByText('1 of 1,000 agents, by sessions').waitFor();
  const { searchParams } = new URL(page.url());
  expect(Object.fromEntries(searchParams)).toEqual({ state: 'working', host: 'build-1', sort: 'sessions' });
  await page.reload();
  await page.getByText('1 of 1,000 agents, by sessions').waitFor();
  expect(await page.getByRole('row').filter({ hasText: 'runner-7' }).textContent()).toContain('Claude Code');
  await page.goBack();
  await page.getByText('333 of 1,000 agents, by sessions').waitFor();
  await page.close();
});

test('agents that are selected are retired and taken back, and those at work say why they are not', async () => {
  const page = await it.open('/agents?q=runner-7');
  await live(page);
  await page.getByRole('checkbox', { name: 'Select runner-7', exact: true }).check();
  await page.getByRole('checkbox', { name: 'Select runner-70', exact: true }).check();
  const bar = page.getByRole('region', { name: 'Selected agents' });
  await bar.getByText('Can’t be asked: no runner listens.').waitFor();
  expect(await bar.getByRole('radio', { name: 'debug' }).getAttribute('aria-disabled')).toBe('true');
  expect(await barriersInBothThemes(page)).toEqual([]);
  await press(bar.getByRole('button', { name: 'Retire' }));
  await press(bar.getByRole('button', { name: 'Press again: retire' }));
  const told = bar.getByRole('list', { name: 'Retire: what came of it' });
  await told.getByText(/^2 of its sessions are not over/).waitFor();
  await told.getByText('retired').waitFor();
  const retiredAt = async (id: string) => (await it.read<{ agent: AgentSummary }>(`/agents/${id}`)).agent.retiredAt;
  expect([await retiredAt('runner-7'), await retiredAt('runner-70')]).toEqual([null, expect.any(Number)]);
  await page.goto(`${it.server.url}/agents?q=runner-70&retired=1`);
  await live(page);
  await page.getByRole('checkbox', { name: 'Select runner-70', exact: true }).check();
  await bar.getByRole('button', { name: 'Take back' }).click();
  await expect.poll(() => retiredAt('runner-70')).toBe(null);
  await page.close();
});

test('what the fleet does is charted, and every figure is said', async () => {
  const page = await it.open('/agents');
  await live(page);
  const chart = page.getByRole('region', { name: 'Events per minute' });
  await chart.getByText(/^\d+ events in 60 minutes, at most \d+ in one; \d+ so far in the one that goes on$/).waitFor();
  expect(await chart.locator('canvas').count()).toBe(1);
  await chart.getByText('Figures').click();
  expect(await chart.getByRole('row').count()).toBe(61);
  await page.getByRole('region', { name: 'Time to answer' }).getByText('the last 2 replies').waitFor();
  await page.getByRole('button', { name: 'Activity' }).click();
  await chart.waitFor({ state: 'detached' });
  await page.close();
});
