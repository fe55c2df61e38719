import { expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { permissionWithOptions, userTurnEvent, wokenTurnEvent } from '../support/permission-card';
import { press } from '../support/press';
import { isFocused, live, transcriptOf } from '../support/transcript-page';
import { message, taskEnded, taskStarted } from '../support/turn-events';
import { perFile, visit } from '../support/visit';
import { WireRunner } from '../support/wire-runner';

const site = perFile(visit);

test('a turn that Interlude started links to its task, and the task links back', async () => {
  await new EventWriter(site.server, 'kinds-waker').write('kinds-woken', [
    ...message('r1/m', 'Start the tests', 'user'),
    userTurnEvent('RUN_STARTED', 'r1'),
    taskStarted('t1', 'npm test -- --watch=false'),
    userTurnEvent('RUN_FINISHED', 'r1'),
    taskEnded('t1', 'completed', { exit_code: 0, summary: '212 tests passed' }),
    wokenTurnEvent('RUN_STARTED', 'r2', 't1'),
    ...message('a2', 'All 212 tests pass.'),
    wokenTurnEvent('RUN_FINISHED', 'r2', 't1'),
  ]);
  const page = await site.open('/sessions/kinds-woken');
  await live(page);
  const turn = transcriptOf(page).getByRole('article', { name: /woken by Interlude for npm test/ });
  await turn.getByRole('heading', { name: /^Woken by Interlude for npm test/ }).waitFor();
  await turn.getByRole('link', { name: 'npm test -- --watch=false' }).click();
  const card = transcriptOf(page).getByRole('group', { name: /^Task npm test/ });
  await expect.poll(() => isFocused(card)).toBe(true);
  expect(await card.getByRole('link', { name: 'Woke the agent' }).getAttribute('href')).toBe('#turn-r2');
  await site.leave(page);
});

test('a permission with the agent’s own options can be allowed once its whole input was on screen, and denied before', async () => {
  const agent = new EventWriter(site.server, 'kinds-asker');
  await agent.status('kinds-asks', { kind: 'acp', takes: ['permission.decision'] });
  const runner = await WireRunner.connect(site.server, 'kinds-asker');
  const commands = Array.from({ length: 200 }, (_, index) => `echo ${index}`).join('\n');
  await agent.write('kinds-asks', [
    ...message('q1/m', 'Install it', 'user'),
    userTurnEvent('RUN_STARTED', 'q1'),
    permissionWithOptions('p1', commands),
  ]);
  const page = await site.open('/sessions/kinds-asks');
  await live(page);
  const card = page.getByRole('region', { name: /^Permission.*echo 0/ }).first();
  const deny = card.getByRole('button', { name: 'No, tell it what to do instead' });
  await expect.poll(() => deny.getAttribute('aria-disabled')).toBe('false');
  for (const name of ['Allow: “Yes, this once”', /^Allow from now on: /]) {
    expect(await card.getByRole('button', { name }).getAttribute('aria-disabled')).toBe('true');
  }
  await press(deny);
  expect((await runner.next('permission.decision')).body).toMatchObject({ behavior: 'deny', optionId: 'no' });
  runner.leave();
  await site.leave(page);
});
