import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { press } from '../support/press';
import { taskStarted, userTurn } from '../support/turn-events';
import { perFile, visit } from '../support/visit';

const site = perFile(visit);

const custom = (name: string, value: object): AgUiEvent => ({ type: 'CUSTOM', name, value });
const wrote = (task_id: string, text: string, more: object = {}) => custom('task:output', { task_id, text, ...more });
const outputOf = (page: Page, task: string) => page.getByRole('region', { name: `Output of “${task}”` });

test('a task card shows its output, live, in colour and folded by keyboard, and after its end', async () => {
  const agent = new EventWriter(site.server, 'task-output-watched');
  await agent.write('task-output-watched', [
    ...userTurn('r1', 'Build it', [taskStarted('b1', 'Build')]),
    wrote('b1', 'begins\n'),
  ]);
  const page = await site.open('/sessions/task-output-watched');
  const output = outputOf(page, 'Build');
  await output.getByText('begins').waitFor();
  await agent.write('task-output-watched', [wrote('b1', '\u001b[31mwarning\u001b[0m one\n')]);
  const warning = output.getByText('warning', { exact: true });
  await warning.waitFor();
  const colours = await warning.evaluate((word) =>
    [word, word.closest('section') as Element].map((of) => getComputedStyle(of).color),
  );
  expect(colours[0]).not.toBe(colours[1]);
  const fold = page.getByRole('group', { name: /^Task Build/ }).getByRole('button', { name: 'Output', exact: true });
  await fold.focus();
  await page.keyboard.press('Enter');
  await expect.poll(() => output.count()).toBe(0);
  await page.keyboard.press('Enter');
  await warning.waitFor();
  await agent.write('task-output-watched', [
    custom('task:completed', { task_id: 'b1', status: 'failed', exit_code: 2 }),
    wrote('b1', 'last words\n', { redacted: 1, ended: true }),
  ]);
  await output.getByText('last words').waitFor();
  await output.getByText('1 secret removed').waitFor();
  await page.reload();
  await output.getByText('last words').waitFor();
  await site.leave(page);
});

test('a search covers all output by keyboard, and keeps its place meanwhile', async () => {
  const agent = new EventWriter(site.server, 'task-output-searched');
  const lines = Array.from(
    { length: 4_000 },
    (_, index) => `test ${index} ${index % 1_000 === 7 ? 'failed here' : 'passed'}\n`,
  );
  await agent.write('task-output-searched', userTurn('r1', 'Test it', [taskStarted('b1', 'Tests')]));
  for (let index = 0; index < lines.length; index += 500) {
    await agent.write('task-output-searched', [wrote('b1', lines.slice(index, index + 500).join(''))]);
  }
  const page = await site.open('/sessions/task-output-searched');
  const output = outputOf(page, 'Tests');
  await output.getByText('test 3999 passed').waitFor();
  expect(await output.getByText('test 3900 passed').count()).toBe(0);
  await press(output.getByRole('button', { name: 'Show all and search' }));
  const log = output.getByRole('log', { name: 'Output of “Tests”' });
  await log.getByText('test 3999 passed').waitFor();
  await output.getByRole('searchbox').focus();
  await page.keyboard.type('FAILED HERE');
  await output.getByText('4 of 4').waitFor();
  await log.getByText('test 3007').waitFor();
  await page.keyboard.press('Enter');
  await output.getByText('3 of 4').waitFor();
  await log.getByText('test 2007').waitFor();
  // Later output moves nothing until the reader requests it.
  const top = () => log.evaluate((box) => box.scrollTop);
  const before = await top();
  await agent.write('task-output-searched', [wrote('b1', 'written meanwhile\n')]);
  const more = output.getByRole('button', { name: 'New output. Go to the end' });
  await more.waitFor();
  expect(await top()).toBe(before);
  await more.press('Enter');
  await log.getByText('written meanwhile').waitFor();
  await agent.write('task-output-searched', [wrote('b1', 'and more\n')]);
  await log.getByText('and more').waitFor();
  await site.leave(page);
});
