import type { AgentDetail, Task } from '@interlude/protocol/read-models';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { press, pressUntil } from '../support/press';
import { taskEnded, taskStarted, userTurn, wokenTurn } from '../support/turn-events';
import { perFile, visit } from '../support/visit';

const site = perFile(visit);

const tasksOf = async (session: string) => (await site.read<{ tasks: Task[] }>(`/sessions/${session}/tasks`)).tasks;
const agent = (id: string) => site.read<AgentDetail>(`/agents/${id}`);
const card = (page: Page, name: string) => page.getByRole('group', { name: new RegExp(`^Task ${name}: `) }).first();

test('a task card links to the session that reported its end and to the reporting turn', async () => {
  const writer = new EventWriter(site.server, 'ownership-two');
  await writer.write('ownership-owner', userTurn('r1', 'Build it', [taskStarted('t1', 'Build')]));
  await writer.write('ownership-teller', userTurn('r1', 'Something else', 'Gladly'));
  const owner = await site.open('/sessions/ownership-owner');
  await card(owner, 'Build').getByText('running').first().waitFor();

  await writer.write('ownership-teller', [
    taskEnded('t1', 'failed', { exit_code: 2, summary: 'No compiler' }),
    ...wokenTurn('r2', 't1', 'The build has failed, says the other one.'),
  ]);
  await card(owner, 'Build').getByText('exit 2').first().waitFor();
  await card(owner, 'Build')
    .getByText(/^Reported by session ownership-teller$/)
    .waitFor();
  await card(owner, 'Build').getByRole('link', { name: 'session ownership-teller' }).last().click();

  await owner.waitForURL(/\/sessions\/ownership-teller#turn-r2$/);
  const turn = owner.getByRole('article', {
    name: 'Between-run turn: notified about a task in session “ownership-owner”',
  });
  await turn.waitFor();
  expect(await turn.getByText(/Woken by/).count()).toBe(0);
  await turn.getByText(/Reports the task “Build” \(failed\)/).waitFor();
  expect(await owner.getByRole('log', { name: 'Transcript' }).getByText('rejected').count()).toBe(0);
  await turn.getByRole('link', { name: 'session ownership-owner' }).first().click();
  await owner.waitForURL(/\/sessions\/ownership-owner$/);
  await site.leave(owner);
});

test('records of a task without a known session are assigned or discarded on the agent’s open page', async () => {
  const writer = new EventWriter(site.server, 'ownership-parks');
  await writer.write('ownership-first', userTurn('r1', 'Watch the nightly', 'Gladly'));
  await writer.write('ownership-second', userTurn('r1', 'Something else', 'Gladly'));
  const list = await site.open('/agents?q=ownership-parks');
  const row = list.getByRole('row').filter({ hasText: 'ownership-parks' });
  await row.waitFor();
  const page = await site.load('/agents/ownership-parks');
  expect(await page.getByRole('heading', { name: /^Unassigned/ }).count()).toBe(0);

  await writer.park('ownership-second', [
    { type: 'CUSTOM', name: 'task:progress', value: { task_id: 'nightly-1', summary: 'Half way' } },
    taskEnded('nightly-1', 'completed', { summary: 'All green' }),
    taskEnded('of-no-use', 'failed'),
  ]);
  await row.getByText('3 unassigned').filter({ visible: true }).waitFor();
  await page.getByRole('heading', { name: 'Unassigned 3' }).waitFor();

  await page.getByLabel('Session of task “nightly-1”').selectOption('ownership-first');
  await press(page.getByRole('button', { name: 'Assign task “nightly-1”' }));
  await page.getByRole('heading', { name: 'Unassigned 1' }).waitFor();
  expect(await tasksOf('ownership-first')).toMatchObject([
    { status: 'completed', assignedBy: 'operator', reportedBy: 'ownership-second' },
  ]);

  const again = page.getByRole('button', { name: 'Press again to discard task “of-no-use”' });
  await pressUntil(page.getByRole('button', { name: 'Discard task “of-no-use”', exact: true }), again);
  expect((await agent('ownership-parks')).agent.parkedCount).toBe(1);
  await press(again);
  await page.getByRole('heading', { name: /^Unassigned/ }).waitFor({ state: 'detached' });
  await expect.poll(() => row.getByText(/\d unassigned/).count()).toBe(0);
  await page.getByText('task_of_no_session').first().click();
  await page.getByText(/^Discarded by operator/).waitFor();
  await page.close();
  await site.leave(list);

  const session = await site.open('/sessions/ownership-first');
  await session.getByText(/about the task “nightly-1” was assigned to this session by operator/).waitFor();
  await session
    .getByText(/^reported by session ownership-second$/i)
    .first()
    .waitFor();
  await site.leave(session);
});
