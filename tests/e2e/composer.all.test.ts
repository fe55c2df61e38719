import { expect, test } from 'vitest';
import { violationsInBothThemes } from '../support/accessibility';
import { idleAgent, LONG_TEXT } from '../support/agent-pages';
import { press, untilPressable } from '../support/press';
import { transcriptOf } from '../support/transcript-page';
import { message, taskEnded, taskStarted } from '../support/turn-events';
import { perFile, visit } from '../support/visit';
import { requestOpened, requestResolved, turnOf } from '../support/wire-runner';

// Requests that a test aborts.
const site = perFile(visit, /ERR_FAILED.*\/messages/);

test('a message is sent once when its response is lost', async () => {
  const { runner, page, composer, close } = await idleAgent(site, 'compose-all-echo');
  let attempts = 0;
  await page.route('**/api/v1/sessions/compose-all-echo-session/messages', async (route) => {
    attempts += 1;
    if (attempts > 1) return route.continue();
    await route.fetch();
    await route.abort();
  });
  await composer.fill('Said once');
  await composer.press('Enter');
  const command = await runner.next('message');
  await page.getByText('Queued', { exact: true }).waitFor();
  expect(await transcriptOf(page).getByText('Said once', { exact: true }).count()).toBe(1);
  await runner.acknowledge(command, 'delivered');
  await page.getByText('Delivered', { exact: true }).waitFor();
  expect(runner.commands).toEqual([]);
  expect(await page.evaluate(() => Object.keys(localStorage).filter((key) => key.includes('outgoing')))).toEqual([]);
  await close();
});

test('a permission is decided by key, stays in sight, and shows who decided it', async () => {
  const { agent, runner, page, sessionId, close } = await idleAgent(site, 'compose-all-asker');
  const input = { command: 'rm -rf build' };
  await agent.write(sessionId, [
    turnOf('RUN_STARTED', 'second', []),
    requestOpened({
      request_id: 'q1',
      kind: 'permission',
      tool_name: 'Bash',
      title: 'Run a command',
      input,
      expires_at: Date.now() + 300_000,
    }),
  ]);
  const card = transcriptOf(page).getByRole('region', { name: 'Permission: “Run a command”' });
  await card.getByText('rm -rf build').waitFor();
  await card.getByText(/4 min \d+ s left/).waitFor();
  await card.focus();
  await untilPressable(card.getByRole('button', { name: 'Allow', exact: true }));
  await page.keyboard.press('a');
  const command = await runner.next('permission.decision');
  expect(command.body).toMatchObject({ requestId: 'q1', behavior: 'allow' });
  await card.getByText('Allowed. Sending to the agent…').waitFor();
  await runner.acknowledge(command, 'done');
  await agent.write(sessionId, [requestResolved('q1', 'allowed')]);
  await card.getByText(/Allowed by operator after/).waitFor();

  await agent.write(sessionId, [
    requestOpened({ request_id: 'q2', kind: 'permission', tool_name: 'Write', title: 'Write a file', input: {} }),
    ...message('long', LONG_TEXT),
  ]);
  const pinned = page.getByRole('group', { name: 'Waiting for you' });
  await press(pinned.getByRole('button', { name: 'Deny with a reason' }));
  await page.keyboard.type('not there');
  await page.keyboard.press('Enter');
  const denial = await runner.next('permission.decision');
  expect(denial.body).toMatchObject({ behavior: 'deny', message: 'not there' });
  await runner.acknowledge(denial, 'failed', 'the agent has gone on');
  await pinned.getByText('The answer did not reach the agent: the agent has gone on').waitFor();
  await pinned.getByRole('region', { name: 'Permission, pinned: “Write a file”' }).focus();
  await untilPressable(pinned.getByRole('button', { name: 'Deny', exact: true }));
  await page.keyboard.press('d');
  await runner.acknowledge(await runner.next('permission.decision'), 'done');
  await agent.write(sessionId, [requestResolved('q2', 'denied')]);
  await pinned.waitFor({ state: 'hidden' });
  await close();
});

test('a task is stopped with two presses, and again after a failure', async () => {
  const { agent, runner, page, sessionId, close } = await idleAgent(site, 'compose-all-stopper');
  await agent.write(sessionId, [turnOf('RUN_STARTED', 'second', []), taskStarted('t1', 'Nightly build')]);
  const card = page.getByRole('group', { name: 'Task Nightly build: running' });
  await press(card.getByRole('button', { name: 'Stop “Nightly build”' }));
  await press(card.getByRole('button', { name: 'Press again to stop “Nightly build”' }));
  await card.getByText('Stopping…').waitFor();
  const stop = await runner.next('task.stop');
  expect(stop.body).toEqual({ taskId: 't1', description: 'Nightly build' });
  await runner.acknowledge(stop, 'failed', 'no such task here');
  await card.getByText(/Could not stop the task: .*no such task here/).waitFor();
  await press(card.getByRole('button', { name: 'Stop “Nightly build”' }));
  await press(card.getByRole('button', { name: 'Press again to stop “Nightly build”' }));
  await runner.acknowledge(await runner.next('task.stop'), 'done');
  await agent.write(sessionId, [taskEnded('t1', 'stopped')]);
  await page.getByRole('group', { name: 'Task Nightly build: stopped' }).waitFor();
  await close();
});

for (const [width, height] of [
  [360, 740],
  [1280, 800],
] as const) {
  test(`session page with requests has no axe violation and fits at ${width} px, in light and dark`, async () => {
    const { agent, runner, page, sessionId, composer, close } = await idleAgent(site, `compose-all-wide-${width}`);
    await page.setViewportSize({ width, height });
    await composer.fill('A message that fails');
    await composer.press('Enter');
    await runner.acknowledge(await runner.next('message'), 'failed', 'it would not be taken');
    await agent.write(sessionId, [
      turnOf('RUN_STARTED', 'second', []),
      taskStarted('t1', 'Nightly build'),
      requestOpened({
        request_id: 'p',
        kind: 'permission',
        tool_name: 'Bash',
        title: 'Use Bash',
        input: { command: 'ls' },
      }),
      requestOpened({ request_id: 'q', kind: 'question', title: 'Which one?', input: null }),
    ]);
    await page
      .getByRole('region', { name: /Which one\?/ })
      .first()
      .waitFor();
    expect(await violationsInBothThemes(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
    await close();
  });
}
