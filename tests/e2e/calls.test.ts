import { beforeAll, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { live } from '../support/transcript-page';
import { taskEnded, taskStarted, toolCall, userTurn } from '../support/turn-events';
import { perFile, visit } from '../support/visit';

const site = perFile(visit);
let agent: EventWriter;
beforeAll(async () => {
  agent = new EventWriter(site.server, 'calls-editor');
});

test('an edit unfolds to its changed lines in colour, and a to-do list to a checklist', async () => {
  const lines = Array.from({ length: 2_000 }, (_, index) => `line ${index} \u202e`);
  const large = { file_path: 'b.ts', old_string: lines.join('\n'), new_string: lines.with(1_000, 'new').join('\n') };
  const todos = [
    { content: 'Read', status: 'completed' },
    { content: 'Run the tests', status: 'in_progress' },
  ];
  const edit = { file_path: 'a.ts', old_string: 'one\ntwo', new_string: 'one\n2\nthree' };
  const work = [
    ...toolCall('t1', 'Edit', edit, 'Updated'),
    ...toolCall('t2', 'Edit', large, 'Updated'),
    ...toolCall('t3', 'TodoWrite', { todos }, 'ok'),
  ];
  await agent.write('calls-edits', userTurn('r', 'Mend it', work));
  const page = await site.open('/sessions/calls-edits');
  await live(page);
  await page.getByRole('button', { name: 'Edit a.ts 2 lines added, 1 removed' }).click();
  await expect.poll(() => page.getByRole('deletion').allInnerTexts()).toEqual(['−\ntwo']);
  expect(await page.getByRole('insertion').allInnerTexts()).toEqual(['+\n2', '+\nthree']);
  const ground = (role: 'deletion' | 'insertion') =>
    page
      .getByRole(role)
      .first()
      .evaluate((line) => getComputedStyle(line).backgroundColor);
  expect(await ground('deletion')).not.toBe(await ground('insertion'));
  await page.getByText('Updated').waitFor();
  // The page compares a large edit when idle.
  await page.getByRole('button', { name: 'Edit b.ts 1 line added, 1 removed' }).click();
  await page.getByRole('button', { name: '997 unchanged lines' }).click();
  await page.getByText('line 0 ⟨RLO⟩', { exact: true }).waitFor();
  await page.getByRole('button', { name: /^TodoWrite 1 of 2 done: Run the tests/ }).click();
  const items = page.getByRole('list', { name: 'To do' }).getByRole('listitem');
  await expect
    .poll(async () => (await items.allTextContents()).map((text) => text.trim()))
    .toEqual(['done: Read', 'in progress: Run the tests']);
  await site.leave(page);
});

test('the duration of a task stays on one line beside a long name', async () => {
  const work = [taskStarted('t', 'a long name '.repeat(20)), taskEnded('t', 'completed', {})];
  await agent.write('calls-long-name', userTurn('r', 'Go', work));
  const page = await site.open('/sessions/calls-long-name');
  await live(page);
  const time = page
    .getByRole('group', { name: /^Task/ })
    .getByText(/^\d+\.\d s$/)
    .first();
  await time.waitFor();
  expect(await time.evaluate((element) => element.getClientRects().length)).toBe(1);
  expect((await time.boundingBox())?.height).toBeLessThan(24);
  await site.leave(page);
});
