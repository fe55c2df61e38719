import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { press } from '../support/press';
import { live } from '../support/transcript-page';
import { taskEnded, taskStarted, userTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';

let it: OwnVisit;
let agent: EventWriter;
beforeAll(async () => {
  it = await visitOwn();
  agent = new EventWriter(it.server, 'many');
  for (const id of ['one', 'two', 'three', 'four']) await agent.write(id, userTurn('r1', `Session ${id}`, 'Done.'));
});
afterAll(async () => {
  await it.close();
  expect(it.complaints).toEqual([]);
});

const fails = (runId: string) => [
  { type: 'RUN_STARTED', threadId: 's', runId },
  { type: 'RUN_ERROR', threadId: 's', runId, message: `No disk left for ${runId}` },
];
const row = (page: Page, id: string) => page.locator(`[data-session-row="${id}"]`);
const changes = (page: Page) => page.getByRole('button', { name: /^\d+ (?:moved|new)/ });

function order(page: Page): Promise<string[]> {
  return page
    .locator('[data-session-row]')
    .evaluateAll((rows) => rows.map((one) => (one as HTMLElement).dataset.sessionRow ?? ''));
}

test('rows stay where they are while the pointer is over them: what changes is shown in place, and moves after', async () => {
  const page = await it.open('/');
  await live(page);
  const before = await order(page);
  const last = before.at(-1) as string;
  await row(page, before[1] as string).hover();
  const place = await row(page, before[1] as string).boundingBox();

  await agent.write(last, fails('r2'));
  await row(page, last).getByText('No disk left for r2').waitFor();
  await page.getByRole('button', { name: '1 moved' }).waitFor();
  expect(await order(page)).toEqual(before);
  await agent.write('five', userTurn('r1', 'Session five', 'New here.'));
  await page.getByRole('button', { name: '1 moved, 1 new' }).waitFor();
  // behind all others it moves none
  expect(await order(page)).toEqual([...before, 'five']);
  expect(await row(page, before[1] as string).boundingBox()).toEqual(place);

  await page.getByRole('link', { name: 'Interlude' }).hover();
  await row(page, 'five').waitFor();
  expect((await order(page))[0]).toBe(last);
  expect(await changes(page).count()).toBe(0);
  await page.close();
});

test('they stay while the keys walk through them, until the reader asks for the changes, or leaves', async () => {
  const page = await it.open('/');
  await live(page);
  const before = await order(page);
  const last = before.at(-1) as string;
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

  await page.getByRole('link', { name: 'Interlude' }).hover();
  await row(page, before[2] as string).focus();
  await page.keyboard.press('j');
  const held = await order(page);
  await agent.write('six', userTurn('r1', 'Session six', 'New here.'));
  await page.getByRole('button', { name: '1 new' }).waitFor();
  expect(await order(page)).toEqual([...held, 'six']);
  await page.keyboard.press('Escape');
  await changes(page).waitFor({ state: 'hidden' });
  expect((await order(page)).at(-1)).not.toBe('six');
  await page.close();
});

test('a search and what is asked for are no changes to wait for', async () => {
  const page = await it.open('/');
  await live(page);
  await page.getByRole('searchbox', { name: 'Search sessions' }).click();
  await page.keyboard.type('session two');
  await expect.poll(() => order(page)).toEqual(['two']);
  expect(await changes(page).count()).toBe(0);
  await page.close();
});

test('agents stand by name, and who is heard of stays in its place', async () => {
  for (const name of ['runner-10', 'runner-2', 'Alpha']) {
    await new EventWriter(it.server, name).write(`${name}-s`, userTurn('r1', 'Hello', 'Hello.'));
  }
  const page = await it.open('/agents');
  await live(page);
  const names = () =>
    page.locator('main [role=row] a').evaluateAll((rows) => rows.map((one) => one.getAttribute('href')));
  const paths = ['Alpha', 'many', 'runner-2', 'runner-10'].map((name) => `/agents/${name}`);
  await expect.poll(names).toEqual(paths);
  await agent.write('seven', userTurn('r1', 'Again', 'Heard of.'));
  const many = page.getByRole('row').filter({ hasText: 'many' });
  await many.getByRole('cell', { name: '7', exact: true }).waitFor();
  expect(await names()).toEqual(paths);

  await page.getByRole('link', { name: /^runner-2/ }).hover();
  await new EventWriter(it.server, 'beta').write('beta-s', userTurn('r1', 'Hello', 'Hello.'));
  await page.getByRole('button', { name: '1 new' }).waitFor();
  expect(await names()).toEqual([...paths, '/agents/beta']);
  await page.getByRole('heading', { name: 'Agents' }).hover();
  await expect.poll(names).toEqual([paths[0], '/agents/beta', ...paths.slice(1)]);
  await page.close();
});

test('tasks stay in place under the pointer', async () => {
  await agent.write('one', [taskStarted('t1', 'First build'), taskStarted('t2', 'Second build')]);
  const page = await it.context.newPage();
  await page.setViewportSize({ width: 1680, height: 900 });
  await page.goto(`${it.server.url}/sessions/one`);
  await live(page);
  const panel = page.getByRole('complementary', { name: 'Tasks' });
  const tasks = () =>
    panel.getByRole('link').evaluateAll((rows) => rows.map((one) => /^\w+/.exec(one.textContent ?? '')?.[0]));
  await expect.poll(tasks).toEqual(['Second', 'First']);
  const before = await tasks();
  await panel.getByRole('link').nth(1).hover();
  await agent.write('one', [taskEnded('t2', 'completed'), taskStarted('t3', 'Third build')]);
  await panel.getByRole('button', { name: '1 moved, 1 new' }).waitFor();
  expect(await tasks()).toEqual([...before, 'Third']);
  await page.getByRole('textbox', { name: /^Message to/ }).hover();
  await expect.poll(async () => (await tasks())[0]).toBe('Third');
  await page.close();
});
