import type { Locator } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { playRecording } from '../support/play-recording';
import { live, transcriptOf } from '../support/transcript-page';
import { type OwnVisit, visitOwn } from '../support/visit';

let it: OwnVisit;
beforeAll(async () => {
  it = await visitOwn();
});
afterAll(async () => {
  await it.close();
  expect(it.complaints).toEqual([]);
});

test('a shell command that fails in the background has the names that assistive technology is promised', async () => {
  const session = await playRecording(it.server, 'bash-bg');
  const page = await it.open(`/sessions/${session}`);
  await page.getByRole('navigation', { name: 'Sessions', exact: true }).waitFor();
  await page.getByRole('status', { name: 'Connection', exact: true }).getByText('Live').waitFor();
  const turns = transcriptOf(page).getByRole('article');
  await expect
    .poll(() => turns.evaluateAll((all) => all.map((turn) => turn.getAttribute('aria-label'))))
    .toEqual(['User turn', 'Between-run turn: woken by Poll (failed, exit 3)', 'Outside any turn']);
  const asked = transcriptOf(page).getByRole('article', { name: 'User turn', exact: true });
  await asked.getByRole('group', { name: 'Task Poll: failed', exact: true }).waitFor();
  const woken = page.getByRole('article', { name: 'Between-run turn: woken by Poll (failed, exit 3)', exact: true });
  await woken.getByText('Poll exited with code 3').waitFor();
  expect(await woken.getByRole('link', { name: 'Poll', exact: true }).count()).toBe(1);
});

test('a session in which three tasks fail one after the other names each of them, on its card and where it woke', async () => {
  const session = await playRecording(it.server, '3bg');
  const page = await it.open(`/sessions/${session}`);
  await live(page);
  const cards = page.getByRole('group', { name: /^Task / });
  const names = (locator: Locator) => locator.evaluateAll((all) => all.map((one) => one.getAttribute('aria-label')));
  expect(await names(cards)).toEqual(['Task Poll 1: failed', 'Task Poll 2: failed', 'Task Poll 3: failed']);
  const woken = (await names(page.getByRole('article', { name: /^Between-run turn: woken by / }))).join(', ');
  for (const one of [1, 2, 3]) expect(woken).toContain(`Poll ${one} (failed, exit ${one})`);
});

test('a stopped task and a task that a subagent did say how they ended', async () => {
  const stopped = await it.open(`/sessions/${await playRecording(it.server, 'stoptask')}`);
  await stopped.getByRole('group', { name: /^Task .+: stopped$/ }).waitFor();
  const agents = await it.open(`/sessions/${await playRecording(it.server, 'agents')}`);
  await live(agents);
  const card = agents.getByRole('group', { name: /^Task .+: completed$/ }).first();
  const unfold = card.getByRole('button', { name: 'What it did' });
  await unfold.click();
  await expect.poll(() => unfold.getAttribute('aria-expanded')).toBe('true');
});
