import type { AgentDetail } from '@interlude/protocol/read-models';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { userTurn } from '../support/turn-events';
import { perFile, visit } from '../support/visit';

const site = perFile(visit);

const row = (page: Page, session: string) => page.locator(`[data-session-row="${session}"]`).first();
const unseen = async (agentId: string) => (await site.read<AgentDetail>(`/agents/${agentId}`)).agent.insightCount;

test('a failed hook marks its session on the list until the failure is seen', async () => {
  const agent = new EventWriter(site.server, 'failures-hooks');
  await agent.write('failures-hooked', userTurn('r1', 'Hello', 'Here I am'));
  await agent.write('failures-beside', userTurn('r1', 'Hello', 'Me too'));
  const list = await site.open('/?agent=failures-hooks');
  await row(list, 'failures-beside').waitFor();
  expect(await row(list, 'failures-hooked').getByText('hook failed').count()).toBe(0);

  await agent.failHook('Stop', 'exit 3: read the input', 'failures-hooked');
  await row(list, 'failures-hooked').getByText('hook failed').waitFor();
  expect(await row(list, 'failures-beside').getByText('hook failed').count()).toBe(0);

  const page = await site.load('/sessions/failures-hooked');
  await page.getByRole('link', { name: 'hook failed', exact: true }).click();
  await page.getByRole('heading', { name: /^Failures/ }).waitFor();
  await page.getByText('exit 3: read the input').waitFor();
  const below = page.getByRole('heading', { name: /^Sessions/ });
  const place = await below.boundingBox();
  await expect.poll(() => unseen('failures-hooks')).toBe(0);
  await page.getByRole('button', { name: 'Mark as seen' }).waitFor({ state: 'detached' });
  expect(await below.boundingBox(), 'what stands below the failures moved').toEqual(place);
  expect(await page.getByText('exit 3: read the input').count()).toBe(1);
  await row(list, 'failures-hooked').getByText('hook failed').waitFor({ state: 'detached' });
  await page.close();
  await site.leave(list);
});

test('a failure appears on the agent’s open page and links to its log line', async () => {
  const agent = new EventWriter(site.server, 'failures-live');
  await agent.write('failures-live-one', userTurn('r1', 'Hello', 'Here I am'));
  const page = await site.open('/agents/failures-live');
  await page.getByRole('heading', { name: 'failures-live', level: 1 }).waitFor();
  await agent.failHook('SessionEnd', 'exit 127: ask the companion');
  await page.getByText('exit 127: ask the companion').waitFor();
  await page.getByRole('link', { name: /^In the log ?: SessionEnd hook$/ }).click();
  await page.waitForURL(/\/agents\/failures-live\/logs#\d+$/);
  await page.getByRole('log', { name: 'Agent log', exact: true }).getByText('exit 127: ask the companion').waitFor();
  await site.leave(page);
});

test('a failure counts as seen when its log line is shown', async () => {
  const agent = new EventWriter(site.server, 'failures-log');
  await agent.write('failures-log-one', userTurn('r1', 'Hello', 'Here I am'));
  await agent.failHook('Stop', 'exit 1: start');
  expect(await unseen('failures-log')).toBe(1);
  const page = await site.open('/agents/failures-log/logs');
  await expect.poll(() => unseen('failures-log')).toBe(0);
  await site.leave(page);
});
