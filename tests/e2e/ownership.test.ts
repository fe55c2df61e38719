import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AgentDetail, Task } from '@/lib/protocol/read-models';
import { barriersInBothThemes } from '../support/barriers';
import { EventWriter } from '../support/event-writer';
import { press, pressUntil } from '../support/press';
import { live } from '../support/transcript-page';
import { taskEnded, taskStarted, userTurn, wokenTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';

let it: OwnVisit;
beforeAll(async () => {
  it = await visitOwn();
});
afterAll(async () => {
  await it.close();
  expect(it.complaints).toEqual([]);
});

const tasksOf = async (session: string) => (await it.read<{ tasks: Task[] }>(`/sessions/${session}/tasks`)).tasks;
const agent = (id: string) => it.read<AgentDetail>(`/agents/${id}`);
const card = (page: Page, name: string) => page.getByRole('group', { name: new RegExp(`^Task ${name}: `) }).first();

test('a task’s card says which session reported its end, and the turn there whose task it was told of', async () => {
  const writer = new EventWriter(it.server, 'agent-two');
  await writer.write('owner', userTurn('r1', 'Build it', [taskStarted('t1', 'Build')]));
  await writer.write('teller', userTurn('r1', 'Something else', 'Gladly'));
  const owner = await it.open('/sessions/owner');
  await live(owner);
  await card(owner, 'Build').getByText('running').first().waitFor();

  await writer.write('teller', [
    taskEnded('t1', 'failed', { exit_code: 2, summary: 'No compiler' }),
    ...wokenTurn('r2', 't1', 'The build has failed, says the other one.'),
  ]);
  await card(owner, 'Build').getByText('exit 2').first().waitFor();
  const reported = card(owner, 'Build').getByText(/^Reported by session teller$/);
  await reported.waitFor();
  await card(owner, 'Build').getByRole('link', { name: 'session teller' }).last().click();

  await owner.waitForURL(/\/sessions\/teller#turn-r2$/);
  const turn = owner.getByRole('article', { name: 'Between-run turn: told of a task of session owner' });
  await turn.waitFor();
  expect(await turn.getByText(/Woken by/).count()).toBe(0);
  await turn.getByText(/Tells of the task “Build” \(failed\)/).waitFor();
  expect(await owner.getByText('in quarantine').count()).toBe(0);
  expect(await barriersInBothThemes(owner)).toEqual([]);
  await turn.getByRole('link', { name: 'session owner' }).first().click();
  await owner.waitForURL(/\/sessions\/owner$/);
  await owner.close();
});

test('what nothing proves the session of is assigned or discarded on the agent’s page, as it happens', async () => {
  const writer = new EventWriter(it.server, 'agent-parks');
  await writer.write('first', userTurn('r1', 'Watch the nightly', 'Gladly'));
  await writer.write('second', userTurn('r1', 'Something else', 'Gladly'));
  const list = await it.open('/agents');
  const page = await it.open('/agents/agent-parks');
  await live(page);
  expect(await page.getByRole('heading', { name: /^Parked/ }).count()).toBe(0);

  await writer.park('second', [
    { type: 'CUSTOM', name: 'task:progress', value: { task_id: 'nightly-1', summary: 'Half way' } },
    taskEnded('nightly-1', 'completed', { summary: 'All green' }),
    taskEnded('of-no-use', 'failed'),
  ]);
  await list.getByText('3 parked').filter({ visible: true }).waitFor();
  await page.getByRole('heading', { name: 'Parked 3' }).waitFor();
  expect(await barriersInBothThemes(page)).toEqual([]);

  await page.getByLabel('Session of task nightly-1').selectOption('first');
  await press(page.getByRole('button', { name: 'Assign task nightly-1' }));
  await page.getByRole('heading', { name: 'Parked 1' }).waitFor();
  expect(await tasksOf('first')).toMatchObject([{ status: 'completed', assignedBy: 'operator', reportedBy: 'second' }]);

  const again = page.getByRole('button', { name: 'Press again: discard task of-no-use' });
  await pressUntil(page.getByRole('button', { name: 'Discard task of-no-use', exact: true }), again);
  expect((await agent('agent-parks')).agent.parkedCount).toBe(1);
  await press(again);
  await page.getByRole('heading', { name: /^Parked/ }).waitFor({ state: 'detached' });
  await expect.poll(() => list.getByText(/parked/).count()).toBe(0);
  await page.getByText('task_of_no_session').first().click();
  await page.getByText(/^Discarded by operator/).waitFor();

  await page.goto(`${it.server.url}/sessions/first`);
  await page.getByText(/of the task “nightly-1” was assigned to this session by operator/).waitFor();
  await page
    .getByText(/^reported by session second$/i)
    .first()
    .waitFor();
  await Promise.all([page.close(), list.close()]);
});
