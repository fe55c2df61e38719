import type { Locator, Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { press } from '../support/press';
import { live } from '../support/transcript-page';
import { taskEnded, taskStarted, userTurn } from '../support/turn-events';
import { perFile, visit } from '../support/visit';

const site = perFile(visit);

const fails = (runId: string) => [
  { type: 'RUN_STARTED', threadId: 's', runId },
  { type: 'RUN_ERROR', threadId: 's', runId, message: `No disk left for ${runId}` },
];
const row = (page: Page, id: string) => page.locator(`[data-session-row="${id}"]`);
const changes = (page: Page) => page.getByRole('button', { name: /^\d+ (?:moved|new)/ });
const outside = (page: Page) => page.getByRole('link', { name: 'Interlude' });

function order(page: Page): Promise<string[]> {
  return page
    .locator('[data-session-row]')
    .evaluateAll((rows) => rows.map((one) => (one as HTMLElement).dataset.sessionRow ?? ''));
}

/** Four sessions of an agent, and the list of only its sessions. */
async function fourSessions(name: string) {
  const agent = new EventWriter(site.server, name);
  for (const at of [1, 2, 3, 4]) await agent.write(`${name}-${at}`, userTurn('r1', `Session ${at}`, 'Done.'));
  // The list keeps its filter between pages, so the test loads it with one and closes the tab.
  const page = await site.load(`/?agent=${name}`);
  await live(page);
  await expect.poll(async () => (await order(page)).toSorted()).toEqual([1, 2, 3, 4].map((at) => `${name}-${at}`));
  const before = (await order(page)) as [string, string, string, string];
  return { agent, page, before, last: before[3] };
}

test('session rows keep their places under the pointer, show changes there, and move when it leaves', async () => {
  const { agent, page, before, last } = await fourSessions('rows-pointed');
  await row(page, before[1]).hover();
  const place = await row(page, before[1]).boundingBox();

  await agent.write(last, fails('r2'));
  await row(page, last).getByText('No disk left for r2').waitFor();
  await page.getByRole('button', { name: '1 moved' }).waitFor();
  expect(await order(page)).toEqual(before);
  await agent.write('rows-pointed-5', userTurn('r1', 'Session 5', 'New here.'));
  await page.getByRole('button', { name: '1 moved, 1 new' }).waitFor();
  // A row at the end moves no other row.
  expect(await order(page)).toEqual([...before, 'rows-pointed-5']);
  expect(await row(page, before[1]).boundingBox()).toEqual(place);

  await outside(page).hover();
  await changes(page).waitFor({ state: 'detached' });
  await expect.poll(async () => (await order(page))[0]).toBe(last);
  expect((await order(page)).at(-1)).not.toBe('rows-pointed-5');
  await page.close();
});

test('session rows keep their places while keys walk through them, until the changes are requested or the focus leaves', async () => {
  const { agent, page, before, last } = await fourSessions('rows-walked');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  const focused = () => page.evaluate(() => (document.activeElement as HTMLElement).dataset.sessionRow);
  expect(await focused()).toBe(before[1]);
  await agent.write(last, fails('r3'));
  await page.getByRole('button', { name: '1 moved' }).waitFor();
  expect(await order(page)).toEqual(before);
  await page.keyboard.press('j');
  expect(await focused()).toBe(before[2]);
  await press(changes(page));
  await expect.poll(async () => (await order(page)).indexOf(last)).toBeLessThan(before.length - 1);

  await outside(page).hover();
  await row(page, before[0]).focus();
  await page.keyboard.press('j');
  const kept = await order(page);
  await agent.write('rows-walked-5', userTurn('r1', 'Session 5', 'New here.'));
  await page.getByRole('button', { name: '1 new' }).waitFor();
  expect(await order(page)).toEqual([...kept, 'rows-walked-5']);
  await outside(page).focus();
  await changes(page).waitFor({ state: 'hidden' });
  expect((await order(page)).at(-1)).not.toBe('rows-walked-5');
  await page.close();
});

test('idle agents are ordered by name, and keep their places under the pointer', async () => {
  const write = (name: string, session: string) =>
    new EventWriter(site.server, name).write(session, userTurn('r1', 'Hello', 'Hello.'));
  const active = new EventWriter(site.server, 'rows-kept-heard');
  await active.write('rows-kept-heard-1', userTurn('r1', 'Hello', 'Hello.'));
  for (const name of ['runner-10', 'runner-2', 'Alpha']) await write(`rows-kept-${name}`, `rows-kept-s-${name}`);
  const page = await site.open('/agents?q=rows-kept');
  await live(page);
  const names = () =>
    page.locator('main [role=row] a').evaluateAll((rows) => rows.map((one) => one.getAttribute('href')));
  const paths = ['Alpha', 'heard', 'runner-2', 'runner-10'].map((name) => `/agents/rows-kept-${name}`);
  await expect.poll(names).toEqual(paths);
  await active.write('rows-kept-heard-2', userTurn('r1', 'Again', 'Heard of.'));
  const cells = page.getByRole('row').filter({ hasText: 'rows-kept-heard' });
  await cells.getByRole('cell', { name: '2', exact: true }).waitFor();
  expect(await names()).toEqual(paths);

  await page.getByRole('link', { name: /^rows-kept-runner-2/ }).hover();
  await write('rows-kept-beta', 'rows-kept-s-beta');
  await page.getByRole('button', { name: '1 new' }).waitFor();
  expect(await names()).toEqual([...paths, '/agents/rows-kept-beta']);
  await page.getByRole('heading', { name: 'Agents' }).hover();
  await expect.poll(names).toEqual([paths[0], '/agents/rows-kept-beta', ...paths.slice(1)]);
  await site.leave(page);
});

test('task rows keep their places under the pointer', async () => {
  const agent = new EventWriter(site.server, 'rows-tasker');
  await agent.write('rows-tasks', [
    ...userTurn('r1', 'Build it', 'Gladly.'),
    taskStarted('t1', 'First build'),
    taskStarted('t2', 'Second build'),
  ]);
  const page = await site.open('/sessions/rows-tasks');
  await live(page);
  await page.setViewportSize({ width: 1680, height: 900 });
  const panel = page.getByRole('complementary', { name: 'Tasks' });
  const tasks = () => firstWords(panel.getByRole('link'));
  await expect.poll(tasks).toEqual(['Second', 'First']);
  await panel.getByRole('link').nth(1).hover();
  await agent.write('rows-tasks', [taskEnded('t2', 'completed'), taskStarted('t3', 'Third build')]);
  await panel.getByRole('button', { name: '1 moved, 1 new' }).waitFor();
  expect(await tasks()).toEqual(['Second', 'First', 'Third']);
  await page.getByRole('textbox', { name: /^Message to/ }).hover();
  await expect.poll(async () => (await tasks())[0]).toBe('Third');
  await site.leave(page);
});

function firstWords(links: Locator): Promise<(string | undefined)[]> {
  return links.evaluateAll((rows) => rows.map((one) => /^\w+/.exec(one.textContent ?? '')?.[0]));
}
