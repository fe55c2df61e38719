import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import { barriersInBothThemes } from '../support/barriers';
import { EventWriter } from '../support/event-writer';
import { press } from '../support/press';
import { live } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';

/** What a task writes while it runs, before an operator. */
let it: OwnVisit;
beforeAll(async () => {
  it = await visitOwn();
});
afterAll(async () => {
  await it.close();
  expect(it.complaints).toEqual([]);
});

const custom = (name: string, value: object): AgUiEvent => ({ type: 'CUSTOM', name, value });
const started = (task_id: string, description: string) =>
  custom('task:started', { task_id, description, task_type: 'local_bash' });
const wrote = (task_id: string, text: string, more: object = {}) => custom('task:output', { task_id, text, ...more });
const outputOf = (page: Page, task: string) => page.getByRole('region', { name: `Output of ${task}` });

test('its end is on its card while it runs, in colour, and all of it after it ended, in another window too', async () => {
  const agent = new EventWriter(it.server, 'builder');
  await agent.write('watched', [...userTurn('r1', 'Build it', [started('b1', 'Build')]), wrote('b1', 'begins\n')]);
  const page = await it.open('/sessions/watched');
  await live(page);
  const output = outputOf(page, 'Build');
  await output.getByText('begins').waitFor();
  await agent.write('watched', [wrote('b1', '\u001b[31mwarning\u001b[0m one\n')]);
  const warning = output.getByText('warning', { exact: true });
  await warning.waitFor();
  const colours = await warning.evaluate((word) =>
    [word, word.closest('section') as Element].map((of) => getComputedStyle(of).color),
  );
  expect(colours[0]).not.toBe(colours[1]);
  // it folds, and unfolds by keyboard
  const fold = page.getByRole('group', { name: /^Task Build/ }).getByRole('button', { name: 'Output', exact: true });
  await fold.focus();
  await page.keyboard.press('Enter');
  await expect.poll(() => output.count()).toBe(0);
  await page.keyboard.press('Enter');
  await warning.waitFor();
  await agent.write('watched', [
    custom('task:completed', { task_id: 'b1', status: 'failed', exit_code: 2 }),
    wrote('b1', 'last words\n', { redacted: 1, ended: true }),
  ]);
  await output.getByText('last words').waitFor();
  await output.getByText('1 secret taken out').waitFor();
  expect(await barriersInBothThemes(page)).toEqual([]);
  const other = await it.open('/sessions/watched');
  await outputOf(other, 'Build').getByText('last words').waitFor();
  for (const one of [page, other]) await one.close();
});

test('all that is kept is searched by keyboard, and stands still for whoever reads in it', async () => {
  const agent = new EventWriter(it.server, 'tester');
  const lines = Array.from({ length: 4_000 }, (_, at) => `test ${at} ${at % 1_000 === 7 ? 'failed here' : 'passed'}\n`);
  await agent.write('searched', userTurn('r1', 'Test it', [started('b1', 'Tests')]));
  for (let at = 0; at < lines.length; at += 500) {
    await agent.write('searched', [wrote('b1', lines.slice(at, at + 500).join(''))]);
  }
  const page = await it.open('/sessions/searched');
  await live(page);
  const output = outputOf(page, 'Tests');
  await output.getByText('test 3999 passed').waitFor();
  expect(await output.getByText('test 3900 passed').count()).toBe(0);
  await press(output.getByRole('button', { name: 'Show all, and search' }));
  const log = output.getByRole('log', { name: 'Output of Tests' });
  await log.getByText('test 3999 passed').waitFor();
  await output.getByRole('searchbox').focus();
  await page.keyboard.type('FAILED HERE');
  await output.getByText('4 of 4').waitFor();
  await log.getByText('test 3007').waitFor();
  await page.keyboard.press('Enter');
  await output.getByText('3 of 4').waitFor();
  await log.getByText('test 2007').waitFor();
  // What is written meanwhile moves nothing, and is a press away.
  const top = () => log.evaluate((box) => box.scrollTop);
  const before = await top();
  await agent.write('searched', [wrote('b1', 'written meanwhile\n')]);
  const more = output.getByRole('button', { name: 'More was written. Go to the end' });
  await more.waitFor();
  expect(await top()).toBe(before);
  expect(await barriersInBothThemes(page)).toEqual([]);
  await more.press('Enter');
  await log.getByText('written meanwhile').waitFor();
  await agent.write('searched', [wrote('b1', 'and more\n')]);
  await log.getByText('and more').waitFor();
  await page.setViewportSize({ width: 360, height: 740 });
  await log.getByText('and more').waitFor();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
  await page.close();
});

test('whatever it writes neither acts nor hides, and what is not kept is said', async () => {
  const agent = new EventWriter(it.server, 'hostile');
  await agent.write('odd', [
    ...userTurn('r1', 'Go', [started('b1', 'Odd')]),
    wrote('b1', '<img src=x onerror=alert(1)>\u001b]0;title\u0007 \u202eevil\n', { from: 70_000, to: 70_050 }),
    wrote('b1', `${'w'.repeat(50_000)}\n`, { from: 90_000, to: 140_001 }),
    wrote('b1', 'end\n', { error: 'The rest of /tmp/b1.output could not be read (ENOENT).', ended: true }),
  ]);
  const page = await it.open('/sessions/odd');
  await live(page);
  const output = outputOf(page, 'Odd');
  await output.getByText('could not be read (ENOENT)').waitFor();
  await press(output.getByRole('button', { name: 'Show all, and search' }));
  const log = output.getByRole('log');
  await log.getByText('end', { exact: true }).waitFor();
  await log.press('Home');
  await log.getByText('What was written before this is not kept').waitFor();
  await log.getByText('19 KiB before this is not kept').waitFor();
  expect(await log.getByText('<img src=x onerror=alert(1)>').textContent()).not.toContain('\u202e');
  await page.close();
});
