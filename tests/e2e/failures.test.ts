import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AgentDetail } from '@/lib/protocol/read-models';
import { barriers } from '../support/barriers';
import { EventWriter } from '../support/event-writer';
import { live } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';

let it: OwnVisit;
beforeAll(async () => {
  it = await visitOwn();
});
afterAll(async () => {
  await it.close();
  expect(it.complaints).toEqual([]);
});

const row = (page: Page, session: string) => page.locator(`[data-session-row="${session}"]`).first();
const unseen = async (agentId: string) => (await it.read<AgentDetail>(`/agents/${agentId}`)).agent.insightCount;

test('a hook that failed is marked on its session as it happens, and until somebody has seen it', async () => {
  const agent = new EventWriter(it.server, 'agent-hooks');
  await agent.write('hooked', userTurn('r1', 'Hello', 'Here I am'));
  await agent.write('beside', userTurn('r1', 'Hello', 'Me too'));
  const list = await it.open('/');
  await live(list);
  await row(list, 'hooked').waitFor();
  expect(await row(list, 'hooked').getByText('hook failed').count()).toBe(0);

  await agent.failHook('Stop', 'exit 3: read the input', 'hooked');
  await row(list, 'hooked').getByText('hook failed').waitFor();
  expect(await row(list, 'beside').getByText('hook failed').count()).toBe(0);

  const page = await it.open('/sessions/hooked');
  await page.getByRole('link', { name: 'hook failed', exact: true }).click();
  await page.getByRole('heading', { name: /^Failures/ }).waitFor();
  await page.getByText('exit 3: read the input').waitFor();
  expect(await barriers(page)).toEqual([]);
  await expect.poll(() => unseen('agent-hooks')).toBe(0);
  await page.getByRole('button', { name: 'Mark as seen' }).waitFor({ state: 'detached' });
  expect(await page.getByText('exit 3: read the input').count()).toBe(1);
  await row(list, 'hooked').getByText('hook failed').waitFor({ state: 'detached' });
  await Promise.all([page.close(), list.close()]);
});

test('a failure appears on the agent’s page that is open, and leads to its line in the log', async () => {
  const agent = new EventWriter(it.server, 'agent-live');
  await agent.write('live-one', userTurn('r1', 'Hello', 'Here I am'));
  const page = await it.open('/agents/agent-live');
  await live(page);
  await agent.failHook('SessionEnd', 'exit 127: ask the companion');
  await page.getByText('exit 127: ask the companion').waitFor();
  await page.getByRole('link', { name: /^In the log ?: SessionEnd hook$/ }).click();
  await page.waitForURL(/\/agents\/agent-live\/logs#\d+$/);
  await page.getByRole('log', { name: 'Agent log', exact: true }).getByText('exit 127: ask the companion').waitFor();
  await page.close();
});

test('a failure of any name is marked as one, and what is none is shown beside it and marks nothing', async () => {
  const agent = new EventWriter(it.server, 'agent-signals');
  await agent.write('signals', userTurn('r1', 'Hello', 'Here I am'));
  const list = await it.open('/');
  await live(list);
  const line = { level: 'info', component: 'context', message: 'two fifths are taken' };
  await agent.log({
    ...line,
    insight: { signal: 'context_ratio', value: 0.4, source: 'context', sessionId: 'signals' },
  });
  await agent.log({
    ...line,
    insight: { signal: '\u202Eevil\n', value: { a: '\u0000' }, outcome: 3, detail: '\u202Etxet' },
  });
  const page = await it.open('/agents/agent-signals');
  const signals = page.locator('section', { has: page.getByRole('heading', { name: 'Signals', exact: true }) });
  await signals.getByText('context_ratio').first().waitFor();
  expect(await signals.getByRole('listitem').count()).toBe(2);
  expect(await signals.textContent()).toContain('0.4');
  expect(await signals.textContent()).not.toMatch(/\u202E/);
  expect(await page.getByRole('heading', { name: /^Failures/ }).count()).toBe(0);
  expect(
    await row(list, 'signals')
      .getByText(/failed|failure/)
      .count(),
  ).toBe(0);

  const message = 'record refused for good and set aside: seq 7, kind event, attempts 1, reason: too large';
  const insight = { signal: 'outbox_poisoned', value: 7, outcome: 'failed', source: 'outbox', sessionId: 'signals' };
  await agent.log({ level: 'fatal', component: 'outbox', message, insight });
  await row(list, 'signals').getByText('1 failure').waitFor();
  const failures = page.locator('section', { has: page.getByRole('heading', { name: /^Failures/ }) });
  await failures.getByText(message).waitFor();
  expect(await failures.textContent()).toContain('outbox_poisoned');
  expect(await barriers(page)).toEqual([]);
  await expect.poll(() => unseen('agent-signals')).toBe(0);
  await row(list, 'signals').getByText('1 failure').waitFor({ state: 'detached' });
  await Promise.all([page.close(), list.close()]);
});

test('an agent’s page says which programs it is made of', async () => {
  const agent = new EventWriter(it.server, 'agent-versions');
  const versions = { runner: '0.1.0', protocol: '1', provider: 'Claude \u202ECode 2.1.329' };
  await agent.status('versions', { kind: 'claude', versions });
  const page = await it.open('/agents/agent-versions');
  const facts = page.locator('section', { has: page.getByRole('heading', { name: 'Runner', exact: true }) });
  await facts.getByText('runner 0.1.0 · protocol 1 · Claude').waitFor();
  expect(await facts.textContent()).not.toMatch(/\u202E/);
  await page.close();
});

test('a failure that was seen as a line of the log is seen', async () => {
  const agent = new EventWriter(it.server, 'agent-log');
  await agent.write('log-one', userTurn('r1', 'Hello', 'Here I am'));
  await agent.failHook('Stop', 'exit 1: start');
  expect(await unseen('agent-log')).toBe(1);
  const page = await it.open('/agents/agent-log/logs');
  await expect.poll(() => unseen('agent-log')).toBe(0);
  await page.close();
});

test('the page of another agent marks nothing, and neither does a tab that nobody looks at', async () => {
  const agent = new EventWriter(it.server, 'agent-unseen');
  await agent.write('unseen-one', userTurn('r1', 'Hello', 'Here I am'));
  await agent.failHook('Stop', 'exit 2: start');
  const page = await it.context.newPage();
  await page.addInitScript(() => Object.defineProperty(document, 'visibilityState', { get: () => 'hidden' }));
  await page.goto(`${it.server.url}/agents/agent-unseen`);
  await page.getByText('exit 2: start').waitFor();
  // twice as long as a look takes
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 4_000)));
  expect(await unseen('agent-unseen')).toBe(1);
  await page.getByRole('button', { name: 'Mark as seen' }).click();
  await expect.poll(() => unseen('agent-unseen')).toBe(0);
  await page.close();
});
