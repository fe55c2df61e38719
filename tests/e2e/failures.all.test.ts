import type { AgentDetail } from '@interlude/protocol/read-models';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { violationsInBothThemes } from '../support/accessibility';
import { EventWriter } from '../support/event-writer';
import { userTurn } from '../support/turn-events';
import { perFile, visit } from '../support/visit';

const site = perFile(visit);

const row = (page: Page, session: string) => page.locator(`[data-session-row="${session}"]`).first();
const unseen = async (agentId: string) => (await site.read<AgentDetail>(`/agents/${agentId}`)).agent.insightCount;

test('a failed signal of any name marks its session, and other signals mark nothing', async () => {
  const agent = new EventWriter(site.server, 'failures-signals');
  await agent.write('failures-signalled', userTurn('r1', 'Hello', 'Here I am'));
  const list = await site.open('/?agent=failures-signals');
  await row(list, 'failures-signalled').waitFor();
  const line = { level: 'info', component: 'context', message: 'two fifths are taken' };
  const ratio = { signal: 'context_ratio', value: 0.4, source: 'context', sessionId: 'failures-signalled' };
  await agent.log({ ...line, insight: ratio });
  const hostile = { signal: '\u202Eevil\n', value: { a: '\u0000' }, outcome: 3, detail: '\u202Etxet' };
  await agent.log({ ...line, insight: hostile });
  const page = await site.load('/agents/failures-signals');
  const signals = page.locator('section', { has: page.getByRole('heading', { name: 'Signals', exact: true }) });
  await signals.getByText('context_ratio').first().waitFor();
  expect(await signals.getByRole('listitem').count()).toBe(2);
  expect(await page.getByRole('heading', { name: /^Failures/ }).count()).toBe(0);
  const marks = row(list, 'failures-signalled').getByText(/failed|\d failures?$/);
  expect(await marks.count()).toBe(0);

  const message = 'record rejected permanently and set aside: seq 7, kind event, attempts 1, reason: too large';
  const refused = { signal: 'outbox_poisoned', value: 7, outcome: 'failed', source: 'outbox' };
  const insight = { ...refused, sessionId: 'failures-signalled' };
  await agent.log({ level: 'fatal', component: 'outbox', message, insight });
  await row(list, 'failures-signalled').getByText('1 failure').waitFor();
  const failures = page.locator('section', { has: page.getByRole('heading', { name: /^Failures/ }) });
  await failures.getByText(message).waitFor();
  expect(await failures.textContent()).toContain('outbox_poisoned');
  expect(await violationsInBothThemes(page)).toEqual([]);
  await expect.poll(() => unseen('failures-signals')).toBe(0);
  await row(list, 'failures-signalled').getByText('1 failure').waitFor({ state: 'detached' });
  await page.close();
  await site.leave(list);
});
