import { expect, test } from 'vitest';
import { violationsInBothThemes } from '../support/accessibility';
import { EventWriter } from '../support/event-writer';
import { taskEnded, taskStarted, userTurn, wokenTurn } from '../support/turn-events';
import { perFile, visit } from '../support/visit';

const site = perFile(visit);

test('a turn that reports another session’s task has no axe violation', async () => {
  const writer = new EventWriter(site.server, 'owned-two');
  await writer.write('owned-owner', userTurn('r1', 'Build it', [taskStarted('t1', 'Build')]));
  await writer.write('owned-teller', [
    ...userTurn('r1', 'Something else', 'Gladly'),
    taskEnded('t1', 'failed', { exit_code: 2, summary: 'No compiler' }),
    ...wokenTurn('r2', 't1', 'The build has failed, says the other one.'),
  ]);
  const page = await site.open('/sessions/owned-teller');
  await page
    .getByRole('article', { name: 'Between-run turn: notified about a task in session “owned-owner”' })
    .waitFor();
  expect(await violationsInBothThemes(page)).toEqual([]);
  await site.leave(page);
});

test('an agent’s page with parked records has no axe violation', async () => {
  const writer = new EventWriter(site.server, 'owned-parks');
  await writer.write('owned-first', userTurn('r1', 'Watch the nightly', 'Gladly'));
  await writer.write('owned-second', userTurn('r1', 'Something else', 'Gladly'));
  await writer.park('owned-second', [taskEnded('owned-nightly', 'completed', { summary: 'All green' })]);
  const page = await site.open('/agents/owned-parks');
  await page.getByRole('heading', { name: 'Unassigned 1' }).waitFor();
  expect(await violationsInBothThemes(page)).toEqual([]);
  await site.leave(page);
});
