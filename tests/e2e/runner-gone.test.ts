import { expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { press, untilPressable } from '../support/press';
import { transcriptOf } from '../support/transcript-page';
import { message, taskStarted, userTurn } from '../support/turn-events';
import { perFile, visit } from '../support/visit';
import { WireRunner } from '../support/wire-runner';

const site = perFile(visit);

test('every page with a working session shows that its runner has gone, and that it works again when it returns', async () => {
  const agent = new EventWriter(site.server, 'gone');
  const runner = await WireRunner.connect(site.server, 'gone');
  await agent.write('gone-session', [
    ...userTurn('first', 'Build it and watch the deploy', [
      ...message('a1', 'Building.'),
      taskStarted('t1', 'Watch the deploy'),
    ]),
    ...message('u2', 'And run the tests', 'user'),
    {
      type: 'RUN_STARTED',
      threadId: 's',
      runId: 'second',
      metadata: { interlude: { turn: 'user', userMessageIds: ['u2'] } },
    },
    ...message('a2', 'Running them now.'),
    { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'Bash' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{"command":"npm test"}' },
    { type: 'TOOL_CALL_END', toolCallId: 'c1' },
  ]);
  const page = await site.open('/sessions/gone-session');
  await page.setViewportSize({ width: 1680, height: 900 });
  const footer = transcriptOf(page).getByText(/^Turn open for \d/);
  await footer.waitFor();
  await page.getByRole('button', { name: 'Interrupt', exact: true }).waitFor();
  await page.getByRole('button', { name: 'Stop “Watch the deploy”' }).waitFor();

  runner.leave();
  // Until the server notices the lost runner, an interrupt would wait for it.
  await page.getByRole('button', { name: 'Queue interrupt' }).waitFor();
  const note = page.getByRole('status').filter({ hasText: 'Runner gone' });
  await note.waitFor();
  expect(await note.textContent()).toMatch(/since \d\d:\d\d \(.*\), last signal \d\d:\d\d:\d\d/);
  await transcriptOf(page).getByText('Runner gone, worked').waitFor();
  expect(await footer.count()).toBe(0);
  expect(await page.getByRole('button', { name: /nterrupt/ }).count()).toBe(0);
  expect(await page.getByRole('button', { name: 'Stop “Watch the deploy”' }).count()).toBe(0);
  await page
    .getByRole('group', { name: /Task Watch the deploy/ })
    .getByText('no signal', { exact: true })
    .waitFor();
  const listed = page.getByRole('navigation', { name: 'Sessions' });
  await listed
    .getByRole('region', { name: /^Lost contact/ })
    .getByText('Build it and watch the deploy')
    .waitFor();
  const clock = transcriptOf(page).locator('p', { hasText: 'Runner gone, worked' }).locator('time');
  const frozenTime = await clock.textContent();
  await page.reload();
  await note.waitFor();
  expect(await clock.textContent()).toBe(frozenTime);

  await agent.write('gone-session', message('a3', 'Still at it.'));
  await footer.waitFor();
  await note.waitFor({ state: 'hidden' });
  await site.leave(page);
});

test('a pending reply of a failed turn is waived at its message or in the list, and the transcript says so', async () => {
  const agent = new EventWriter(site.server, 'gone-debtor');
  const question = (id: string, text: string, runId: string) => [
    ...message(id, text, 'user'),
    {
      type: 'RUN_STARTED',
      threadId: 's',
      runId,
      metadata: { interlude: { turn: 'user' as const, userMessageIds: [id] } },
    },
    { type: 'RUN_ERROR', message: 'No credit' },
  ];
  await agent.write('gone-debtor-session', [...question('u1', 'First?', 'r1'), ...question('u2', 'Second?', 'r2')]);
  const page = await site.open('/sessions/gone-debtor-session');
  const firstMessage = transcriptOf(page).locator('[id="message-u1"]');
  const drop = firstMessage.getByRole('button', { name: 'No reply needed', exact: true });
  await drop.focus();
  await untilPressable(drop);
  await page.keyboard.press('Enter');
  const confirm = firstMessage.getByRole('button', { name: 'Press again: no reply needed' });
  await untilPressable(confirm);
  await page.keyboard.press('Enter');
  await confirm.waitFor({ state: 'hidden' });
  await transcriptOf(page).getByText('The reply to “First?” was waived by operator.').waitFor();

  await page.getByRole('button', { name: /^1 pending reply/ }).click();
  const dialog = page.getByRole('dialog', { name: 'Pending replies' });
  await press(dialog.getByRole('button', { name: 'No reply needed', exact: true }));
  await press(dialog.getByRole('button', { name: 'Press again: no reply needed' }));
  await transcriptOf(page).getByText('The reply to “Second?” was waived by operator.').waitFor();
  await page.getByRole('button', { name: /^1 pending reply/ }).waitFor({ state: 'hidden' });
  await page.reload();
  await transcriptOf(page).getByText('The reply to “Second?” was waived by operator.').waitFor();
  expect(await page.getByRole('button', { name: 'No reply needed' }).count()).toBe(0);
  await site.leave(page);
});
