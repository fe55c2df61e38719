import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { barriersInBothThemes } from '../support/barriers';
import { EventWriter } from '../support/event-writer';
import { press, takesPresses } from '../support/press';
import { isFocused, live, transcriptOf } from '../support/transcript-page';
import { message, taskEnded, taskStarted, userTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';
import { answer, requestOpened, requestResolved, turnOf, WireRunner } from '../support/wire-runner';

let it: OwnVisit;
beforeAll(async () => {
  it = await visitOwn();
});
afterAll(() => it.close());

/** An agent with one session, its runner connected, and its page. */
async function meet(name: string) {
  const agent = new EventWriter(it.server, name);
  await agent.write(`${name}-session`, userTurn('first', 'Begin', 'Begun'));
  const runner = await WireRunner.connect(it.server, name);
  const page = await it.open(`/sessions/${name}-session`);
  await live(page);
  return { agent, runner, page, sessionId: `${name}-session`, composer: composerOf(page, name) };
}

const composerOf = (page: Page, name: string) => page.getByRole('textbox', { name: `Message to ${name}` });
const said = (page: Page, text: string) => transcriptOf(page).getByText(text, { exact: true });

test('a message is shown at once, goes to the runner, and its way is told until a turn has seen it', async () => {
  const { agent, runner, page, sessionId, composer } = await meet('courier');
  await page.keyboard.press('c');
  expect(await isFocused(composer)).toBe(true);
  await page.keyboard.type('Line one');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('line two');
  await page.keyboard.press('Enter');
  const own = transcriptOf(page).getByRole('article').last();
  await own.getByText('Line one').waitFor();
  expect(await composer.inputValue()).toBe('');
  const command = await runner.next('message');
  expect(command.body.text).toBe('Line one\nline two');
  await own.getByText('Queued', { exact: true }).waitFor();
  await runner.acknowledge(command, 'delivered');
  await own.getByText('Delivered', { exact: true }).waitFor();
  const { messageId } = command.body;
  await agent.write(sessionId, [turnOf('RUN_STARTED', 'second', [messageId])]);
  await transcriptOf(page).getByText('Seen', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'owes 1 reply' }).click();
  await page
    .getByRole('dialog', { name: 'Replies owed' })
    .getByRole('link', { name: /Line one/ })
    .waitFor();
  await page.keyboard.press('Escape');
  await agent.write(sessionId, [
    ...answer('a2', 'Both read', [messageId]),
    turnOf('RUN_FINISHED', 'second', [messageId]),
  ]);
  await page.getByRole('button', { name: 'owes 1 reply' }).waitFor({ state: 'hidden' });
  expect(await said(page, 'Line one\nline two').count()).toBe(1);
  // What stands right before it needs no link.
  expect(await page.getByRole('link', { name: /in reply to/ }).count()).toBe(0);
  await agent.write(sessionId, [
    turnOf('RUN_STARTED', 'third', []),
    ...answer('a3', 'One thing more', [messageId]),
    turnOf('RUN_FINISHED', 'third', []),
  ]);
  await page.getByRole('link', { name: /in reply to Line one/ }).click();
  await expect.poll(() => isFocused(page.locator(`[id="message-${messageId}"]`))).toBe(true);
  await page.close();
  runner.leave();
});

test('a message written while the server is away survives a reload and is sent once', async () => {
  const { runner, page, composer } = await meet('patient');
  const refuse = (route: { abort: () => Promise<void> }) => route.abort();
  await it.context.route('**/api/v1/sessions/*/messages', refuse);
  await composer.fill('Through the storm');
  await composer.press('Enter');
  await page.getByText('Not sent yet, retrying').waitFor();
  await page.reload();
  await page.getByText('Not sent yet, retrying').waitFor();
  expect(await said(page, 'Through the storm').count()).toBe(1);
  await it.context.unroute('**/api/v1/sessions/*/messages', refuse);
  const command = await runner.next('message');
  expect(command.body.text).toBe('Through the storm');
  await page.getByText('Not sent yet, retrying').waitFor({ state: 'hidden' });
  expect(await said(page, 'Through the storm').count()).toBe(1);
  await runner.acknowledge(command, 'failed', 'the agent could not take it');
  await page.getByText('Not delivered: the agent could not take it').waitFor();
  await page.getByRole('button', { name: 'Try again' }).click();
  const again = await runner.next('message');
  expect(again.body).toMatchObject({ text: 'Through the storm' });
  expect(again.id).not.toBe(command.id);
  await page.close();
  runner.leave();
});

test('an answer that is lost on the way back doubles nothing', async () => {
  const { runner, page, composer } = await meet('echo');
  let attempts = 0;
  await it.context.route('**/api/v1/sessions/echo-session/messages', async (route) => {
    attempts += 1;
    if (attempts > 1) return route.continue();
    await route.fetch();
    await route.abort();
  });
  await composer.fill('Said once');
  await composer.press('Enter');
  const command = await runner.next('message');
  await page.getByText('Queued', { exact: true }).waitFor();
  expect(await said(page, 'Said once').count()).toBe(1);
  await runner.acknowledge(command, 'delivered');
  await page.getByText('Delivered', { exact: true }).waitFor();
  expect(runner.commands).toEqual([]);
  expect(await page.evaluate(() => Object.keys(localStorage).filter((key) => key.includes('outgoing')))).toEqual([]);
  await page.close();
  runner.leave();
});

test('a draft is kept for its session, ↑ brings back what was sent, and an input method keeps its Enter', async () => {
  const { runner, page, composer } = await meet('writer');
  await composer.fill('Half a thou');
  await page.reload();
  await expect.poll(() => composer.inputValue()).toBe('Half a thou');
  await composer.evaluate((field) =>
    field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, isComposing: true })),
  );
  expect(await composer.inputValue()).toBe('Half a thou');
  await composer.fill('');
  await composer.press('ArrowUp');
  expect(await composer.inputValue()).toBe('Begin');
  await composer.press('ArrowDown');
  expect(await composer.inputValue()).toBe('');
  await page.close();
  runner.leave();
});

test('while no runner listens it says that the message waits, and nobody writes to an agent that has ended', async () => {
  const { agent, runner, page, sessionId, composer } = await meet('leaver');
  runner.leave();
  await page.getByText('The agent is away: the message waits.').waitFor();
  await composer.fill('Later');
  await composer.press('Enter');
  await page.getByText('Queued: the agent is away, the message waits').waitFor();
  await agent.write(sessionId, [{ type: 'CUSTOM', name: 'session:ended', value: { reason: 'done', exitCode: 0 } }]);
  await page.getByText(/The agent of this session has ended/).waitFor();
  expect(await composer.isDisabled()).toBe(true);
  await page.close();
});

test('a permission is decided by key, counts in the list, stays in sight, and its outcome says by whom', async () => {
  const { agent, runner, page, sessionId } = await meet('asker');
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
  const card = transcriptOf(page).getByRole('region', { name: 'Permission: Run a command' });
  await card.getByText('rm -rf build').waitFor();
  await card.getByText(/4:\d\d left/).waitFor();
  // what has just appeared takes no key
  await card.focus();
  await takesPresses(card.getByRole('button', { name: 'Allow', exact: true }));
  await page.keyboard.press('a');
  const command = await runner.next('permission.decision');
  expect(command.body).toMatchObject({ requestId: 'q1', behavior: 'allow' });
  await card.getByText('Allowed, on its way to the agent…').waitFor();
  await runner.acknowledge(command, 'done');
  await agent.write(sessionId, [requestResolved('q1', 'allowed')]);
  await card.getByText(/Allowed by operator after/).waitFor();

  await agent.write(sessionId, [
    requestOpened({ request_id: 'q2', kind: 'permission', tool_name: 'Write', title: 'Write a file', input: {} }),
    ...message('long', Array.from({ length: 120 }, (_, at) => `Paragraph ${at}`).join('\n\n')),
  ]);
  const pinned = page.getByRole('group', { name: 'Waiting for you' });
  await press(pinned.getByRole('button', { name: 'Deny with a reason' }));
  await page.keyboard.type('not there');
  await page.keyboard.press('Enter');
  const denial = await runner.next('permission.decision');
  expect(denial.body).toMatchObject({ behavior: 'deny', message: 'not there' });
  await runner.acknowledge(denial, 'failed', 'the agent has gone on');
  await pinned.getByText('The answer did not reach the agent: the agent has gone on').waitFor();
  await pinned.getByRole('region', { name: 'Permission, pinned: Write a file' }).focus();
  await takesPresses(pinned.getByRole('button', { name: 'Deny', exact: true }));
  await page.keyboard.press('d');
  await runner.acknowledge(await runner.next('permission.decision'), 'done');
  await agent.write(sessionId, [requestResolved('q2', 'denied')]);
  await pinned.waitFor({ state: 'hidden' });
  await page.close();
  runner.leave();
});

test('a question is answered with options and own words', async () => {
  const { agent, runner, page, sessionId } = await meet('quizzer');
  const questions = [
    { question: 'Which one?', header: 'Pick', options: [{ label: 'A' }, { label: 'B' }], multiSelect: false },
    { question: 'Which of them?', header: 'Some', options: [{ label: 'X' }, { label: 'Y' }], multiSelect: true },
  ];
  await agent.write(sessionId, [
    turnOf('RUN_STARTED', 'second', []),
    requestOpened({ request_id: 'q', kind: 'question', title: 'Which one?', input: { questions } }),
  ]);
  const card = transcriptOf(page).getByRole('region', { name: 'Question: Which one?' });
  const submit = card.getByRole('button', { name: 'Answer' });
  expect(await submit.isDisabled()).toBe(true);
  await card.getByRole('radio', { name: 'B' }).check();
  await card.getByRole('checkbox', { name: 'X' }).check();
  await card.getByRole('textbox', { name: 'Another answer' }).last().fill('and Z');
  await press(submit);
  expect((await runner.next('question.answer')).body.answers).toEqual({
    'Which one?': 'B',
    'Which of them?': ['X', 'and Z'],
  });
  await page.close();
  runner.leave();
});

test('a task is stopped with two presses, a turn with Ctrl+., and what fails can be tried again', async () => {
  const { agent, runner, page, sessionId, composer } = await meet('stopper');
  await agent.write(sessionId, [turnOf('RUN_STARTED', 'second', []), taskStarted('t1', 'Nightly build')]);
  const card = page.getByRole('group', { name: 'Task Nightly build: running' });
  await press(card.getByRole('button', { name: 'Stop Nightly build' }));
  await press(card.getByRole('button', { name: 'Press again to stop Nightly build' }));
  await card.getByText('Stopping…').waitFor();
  const stop = await runner.next('task.stop');
  expect(stop.body).toEqual({ taskId: 't1', description: 'Nightly build' });
  await runner.acknowledge(stop, 'failed', 'no such task here');
  await card.getByText(/Not stopped: .*no such task here/).waitFor();
  await press(card.getByRole('button', { name: 'Stop Nightly build' }));
  await press(card.getByRole('button', { name: 'Press again to stop Nightly build' }));
  await runner.acknowledge(await runner.next('task.stop'), 'done');
  await agent.write(sessionId, [taskEnded('t1', 'stopped')]);
  await page.getByRole('group', { name: 'Task Nightly build: stopped' }).waitFor();

  await composer.focus();
  await takesPresses(page.getByRole('button', { name: 'Interrupt' }));
  await page.keyboard.press('Control+.');
  const interrupt = await runner.next('interrupt');
  await page.getByRole('button', { name: 'Interrupting…' }).waitFor();
  await runner.acknowledge(interrupt, 'done');
  await agent.write(sessionId, [
    { type: 'RUN_ERROR', threadId: 's', runId: 'second', message: 'aborted', code: 'interrupted' },
  ]);
  await page.getByRole('button', { name: /Interrupt/ }).waitFor({ state: 'hidden' });
  await page.close();
  runner.leave();
});

test('Esc leaves the composer for the transcript, keeps what was begun, and interrupts nothing however often', async () => {
  const { agent, runner, page, sessionId, composer } = await meet('escaper');
  await agent.write(sessionId, [turnOf('RUN_STARTED', 'second', [])]);
  await takesPresses(page.getByRole('button', { name: 'Interrupt' }));
  const posts: string[] = [];
  page.on('request', (request) => void (request.method() === 'POST' && posts.push(new URL(request.url()).pathname)));
  await composer.fill('Only begun');
  await page.keyboard.press('Escape');
  await expect.poll(() => isFocused(transcriptOf(page))).toBe(true);
  expect(await composer.inputValue()).toBe('Only begun');
  await page.keyboard.press('j');
  await expect.poll(() => isFocused(transcriptOf(page).getByRole('article').last())).toBe(true);
  for (let again = 0; again < 3; again += 1) {
    await page.keyboard.press('c');
    expect(await isFocused(composer)).toBe(true);
    await page.keyboard.press('Escape');
  }
  // One step out at a time: what is left of the page is the list, and there Esc does nothing.
  await page.keyboard.press('Escape');
  await page.waitForURL(`${it.server.url}/`);
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  expect(posts.filter((path) => path.endsWith('/interrupt'))).toEqual([]);
  expect(runner.commands).toEqual([]);
  await page.close();
  runner.leave();
});

test('what fails out of sight is said where the reader is', async () => {
  const { agent, runner, page, sessionId } = await meet('distant');
  await agent.write(sessionId, [turnOf('RUN_STARTED', 'second', []), taskStarted('t1', 'Long watch')]);
  const card = page.getByRole('group', { name: 'Task Long watch: running' });
  await press(card.getByRole('button', { name: 'Stop Long watch' }));
  await press(card.getByRole('button', { name: 'Press again to stop Long watch' }));
  const stop = await runner.next('task.stop');
  const paragraphs = Array.from({ length: 120 }, (_, at) => `Paragraph ${at}`).join('\n\n');
  await agent.write(sessionId, message('long', paragraphs));
  await transcriptOf(page).evaluate((log) => log.scrollTo(0, log.scrollHeight));
  await expect.poll(() => card.evaluate((element) => element.getBoundingClientRect().bottom < 0)).toBe(true);
  await runner.acknowledge(stop, 'failed', 'no such task here');
  const alert = page.getByRole('alert').getByText(/no such task here/);
  await alert.waitFor();
  await page.getByRole('alert').getByRole('button', { name: 'Dismiss' }).click();
  await alert.waitFor({ state: 'hidden' });
  await page.close();
  runner.leave();
});

for (const [width, height] of [
  [360, 740],
  [1024, 800],
  [1680, 1000],
] as const) {
  test(`at ${width} pixels nothing is cut off, and everything has a name and enough contrast in light and dark`, async () => {
    const { agent, runner, page, sessionId, composer } = await meet(`wide-${width}`);
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
    expect(await barriersInBothThemes(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
    await page.close();
    runner.leave();
  });
}

test('no page had anything to complain about but the requests that were cut on purpose', () => {
  expect(it.complaints.filter((said) => !/ERR_FAILED.*\/messages/.test(said))).toEqual([]);
});
