import type { Locator } from 'playwright-core';
import { expect, test } from 'vitest';
import { playRecording } from '../support/play-recording';
import { perFile, visit } from '../support/visit';

const site = perFile(visit);

test('three tasks that fail in turn are each named on their card and by the turn they woke', async () => {
  const session = await playRecording(site.server, '3bg', 'named-3bg');
  const page = await site.open(`/sessions/${session}`);
  const names = (locator: Locator) => locator.evaluateAll((all) => all.map((one) => one.getAttribute('aria-label')));
  await expect
    .poll(() => names(page.getByRole('group', { name: /^Task / })))
    .toEqual(['Task Poll 1: failed', 'Task Poll 2: failed', 'Task Poll 3: failed']);
  const turnNames = (await names(page.getByRole('article', { name: /^Between-run turn: woken by / }))).join(', ');
  for (const one of [1, 2, 3]) expect(turnNames).toContain(`Poll ${one} (failed, exit ${one})`);
  await site.leave(page);
});

test('the cards of a stopped task and of a subagent’s task name their outcome', async () => {
  const stopped = await site.open(`/sessions/${await playRecording(site.server, 'stoptask', 'named-stoptask')}`);
  await stopped.getByRole('group', { name: /^Task .+: stopped$/ }).waitFor();
  await site.leave(stopped);
  const agents = await site.open(`/sessions/${await playRecording(site.server, 'agents', 'named-agents')}`);
  const card = agents.getByRole('group', { name: /^Task .+: completed$/ }).first();
  const unfold = card.getByRole('button', { name: 'Steps' });
  await unfold.click();
  await expect.poll(() => unfold.getAttribute('aria-expanded')).toBe('true');
  await site.leave(agents);
});
