import type { AgentSummary } from '@interlude/protocol/read-models';
import { beforeAll, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';

import { press, untilPressable } from '../support/press';
import { isFocused } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { perFile, visit } from '../support/visit';

// The server refuses to retire the agent at work.
const site = perFile(visit, /409 \(Conflict\)/);
beforeAll(async () => {
  await new EventWriter(site.server, 'board-idle').write('board-done', userTurn('r1', 'Build it', 'Built.'));
  await new EventWriter(site.server, 'board-busy').write('board-open', [
    ...userTurn('r1', 'Watch the deployment', 'Watching.'),
    { type: 'RUN_STARTED', threadId: 's', runId: 'r2' },
  ]);
});

test('the agents page charts fleet activity, and lists the agents that the address selects', async () => {
  const page = await site.load('/agents?q=board-&sort=-name');
  const names = () =>
    page.getByRole('rowheader').evaluateAll((all) => all.map((one) => one.querySelector('a')?.textContent));
  await expect.poll(names).toEqual(['board-idle', 'board-busy']);
  await page.getByRole('columnheader', { name: 'Agent' }).getByRole('button').click();
  await expect.poll(names).toEqual(['board-busy', 'board-idle']);
  expect(new URL(page.url()).search).toBe('?q=board-&sort=name');
  await page.goBack();
  await expect.poll(names).toEqual(['board-idle', 'board-busy']);

  const chart = page.getByRole('region', { name: 'Events per minute' });
  await chart.getByText(/^[\d,]+ events in the last hour · peak [\d,]+\/min · [\d,]+ this minute$/).waitFor();
  await chart.getByText('Figures').click();
  expect(await chart.getByRole('row').count()).toBe(61);
  await page
    .getByRole('region', { name: 'Time to answer' })
    .getByText(/^the last \d+ replies/)
    .waitFor();
  await page.getByRole('button', { name: 'Activity' }).click();
  await chart.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Activity' }).click();

  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/agents/board-idle');
  await page.getByRole('heading', { name: 'board-idle' }).waitFor();
  await page.keyboard.press('Escape');
  await page.waitForURL('**/agents?q=board-&sort=-name');
  await expect.poll(() => isFocused(page.locator('[data-agent-row="board-idle"]'))).toBe(true);
  await site.leave(page);
});

test('neither a filter nor saving it as a view moves a control', async () => {
  const page = await site.open('/agents');
  for (const width of [1280, 1024, 360]) {
    await page.setViewportSize({ width, height: 800 });
    const chip = page.locator('#content').getByRole('checkbox', { name: /^Idle/ });
    const tops = () =>
      Promise.all([page.getByRole('table'), chip.locator('..')].map(async (of) => (await of.boundingBox())?.y));
    const before = await tops();
    await chip.check({ force: true });
    const save = page.getByRole('button', { name: 'Save view' });
    await save.click();
    await page.getByRole('textbox', { name: 'Name of the view' }).waitFor();
    expect(await tops()).toEqual(before);
    await page.keyboard.press('Escape');
    await chip.uncheck({ force: true });
    await save.waitFor({ state: 'hidden' });
  }
  await site.leave(page);
});

test('Stop all interrupts the listed agents with two presses, by pointer and by keyboard', async () => {
  const page = await site.open('/agents?q=board-');
  const dialog = page.getByRole('dialog', { name: /^Stop (all|the \d+ listed) agents\?$/ });
  const interrupt = dialog.getByRole('button', { name: /^Interrupt 1 session of 1 agent/ });
  const results = page.getByRole('region', { name: 'Stop', exact: true });
  await page.getByRole('button', { name: 'Stop all 2…' }).click();
  await untilPressable(interrupt);
  await interrupt.click({ delay: 100 });
  await results.getByText(/^Interrupt: 1 of 1 agent done/).waitFor();
  await results.getByRole('listitem').filter({ hasText: 'board-busy' }).waitFor();
  await dialog.waitFor({ state: 'detached' });
  await results.getByRole('button', { name: 'Close' }).click();

  await page.getByRole('button', { name: 'Stop all 2…' }).focus();
  await page.keyboard.press('Enter');
  await untilPressable(interrupt);
  expect(await isFocused(interrupt)).toBe(true);
  await page.keyboard.press('Enter');
  await results.getByText(/^Interrupt: 1 of 1 agent done/).waitFor();
  await site.leave(page);
});

test('retires and unretires selected agents, and shows why a working agent is not retired', async () => {
  const page = await site.open('/agents?q=board-');
  const bar = page.getByRole('region', { name: 'Selected agents' });
  await page.getByRole('checkbox', { name: 'Select “board-busy”', exact: true }).check();
  await page.getByRole('checkbox', { name: 'Select “board-idle”', exact: true }).check();
  await bar.getByText('Level can’t be changed: no runner has connected yet.').waitFor();
  expect(await bar.getByRole('radio', { name: 'debug' }).getAttribute('aria-disabled')).toBe('true');
  await press(bar.getByRole('button', { name: 'Retire' }));
  await press(bar.getByRole('button', { name: 'Press again to retire' }));
  const outcomes = bar.getByRole('list', { name: 'Retire: results' });
  await outcomes.getByText(/^The agent has 1 active session\./).waitFor();
  await outcomes.getByText('retired').waitFor();
  const retiredAt = async (id: string) => (await site.read<{ agent: AgentSummary }>(`/agents/${id}`)).agent.retiredAt;
  expect([await retiredAt('board-busy'), await retiredAt('board-idle')]).toEqual([null, expect.any(Number)]);
  await site.leave(page);

  const again = await site.open('/agents?q=board-idle&retired=1');
  await again.getByRole('checkbox', { name: 'Select “board-idle”', exact: true }).check();
  await bar.getByRole('button', { name: 'Unretire' }).click();
  await expect.poll(() => retiredAt('board-idle')).toBe(null);
  await site.leave(again);
});
