import { expect, test } from 'vitest';
import { violationsInBothThemes } from '../support/accessibility';
import { EventWriter } from '../support/event-writer';
import { press } from '../support/press';
import { taskStarted, userTurn } from '../support/turn-events';
import { perFile, visit } from '../support/visit';

const site = perFile(visit);

test('task output has no axe violations while searched, and does not scroll sideways at 360 px', async () => {
  const session = 'task-output-all';
  const lines = Array.from(
    { length: 400 },
    (_, index) => `test ${index} \u001b[31m${index % 100 === 7 ? 'failed' : 'passed'}\u001b[0m\n`,
  );
  const value = { task_id: 'b1', text: lines.join(''), redacted: 1 };
  await new EventWriter(site.server, session).write(session, [
    ...userTurn('r1', 'Test it', [taskStarted('b1', 'Tests')]),
    { type: 'CUSTOM', name: 'task:output', value },
  ]);
  const page = await site.open(`/sessions/${session}`);
  const output = page.getByRole('region', { name: 'Output of “Tests”' });
  await output.getByText('test 399').waitFor();
  expect(await violationsInBothThemes(page)).toEqual([]);
  await press(output.getByRole('button', { name: 'Show all and search' }));
  await output.getByRole('searchbox').fill('failed');
  await output.getByText('4 of 4').waitFor();
  expect(await violationsInBothThemes(page)).toEqual([]);
  await page.setViewportSize({ width: 360, height: 740 });
  await output.getByText('test 307').waitFor();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
  await site.leave(page);
});
