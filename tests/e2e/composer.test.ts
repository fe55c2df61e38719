import type { Page, Request } from 'playwright-core';
import { expect, test } from 'vitest';
import { idleAgent, LONG_TEXT } from '../support/agent-pages';
import { press, untilPressable } from '../support/press';
import { isFocused, transcriptOf } from '../support/transcript-page';
import { message, taskStarted } from '../support/turn-events';
import { perFile, visit } from '../support/visit';
import { answer, turnOf } from '../support/wire-runner';

// Requests that a test aborts.
const site = perFile(visit, /ERR_FAILED.*\/messages/);

const said = (page: Page, text: string) => transcriptOf(page).getByText(text, { exact: true });

test('a message appears at once, reaches the runner, and shows queued, delivered and seen', async () => {
  const { agent, runner, page, sessionId, composer, close } = await idleAgent(site, 'compose-courier');
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
  await page.getByRole('button', { name: /^1 pending reply/ }).click();
  await page
    .getByRole('dialog', { name: 'Pending replies' })
    .getByRole('link', { name: /Line one/ })
    .waitFor();
  await page.keyboard.press('Escape');
  await agent.write(sessionId, [
    ...answer('a2', 'Both read', [messageId]),
    turnOf('RUN_FINISHED', 'second', [messageId]),
  ]);
  await page.getByRole('button', { name: /^1 pending reply/ }).waitFor({ state: 'hidden' });
  expect(await said(page, 'Line one\nline two').count()).toBe(1);
  // A reply directly below its message needs no link to it.
  expect(await page.getByRole('link', { name: /in reply to/ }).count()).toBe(0);
  await agent.write(sessionId, [
    turnOf('RUN_STARTED', 'third', []),
    ...answer('a3', 'One thing more', [messageId]),
    turnOf('RUN_FINISHED', 'third', []),
  ]);
  await page.getByRole('link', { name: /in reply to Line one/ }).click();
  await expect.poll(() => isFocused(page.locator(`[id="message-${messageId}"]`))).toBe(true);
  await close();
});

test('a message survives a reload while the server is away, and is sent once when it returns', async () => {
  const { runner, page, composer, close } = await idleAgent(site, 'compose-patient');
  const refuse = (route: { abort: () => Promise<void> }) => route.abort();
  await page.route('**/api/v1/sessions/*/messages', refuse);
  await composer.fill('Through the storm');
  await composer.press('Enter');
  await page.getByText('Not sent yet. Retrying…').waitFor();
  await page.reload();
  await page.getByText('Not sent yet. Retrying…').waitFor();
  expect(await said(page, 'Through the storm').count()).toBe(1);
  await page.unroute('**/api/v1/sessions/*/messages', refuse);
  const command = await runner.next('message');
  expect(command.body.text).toBe('Through the storm');
  await page.getByText('Not sent yet. Retrying…').waitFor({ state: 'hidden' });
  expect(await said(page, 'Through the storm').count()).toBe(1);
  await runner.acknowledge(command, 'failed', 'the agent could not take it');
  await page.getByText('Not delivered: the agent could not take it').waitFor();
  await page.getByRole('button', { name: 'Try again' }).click();
  const again = await runner.next('message');
  expect(again.body).toMatchObject({ text: 'Through the storm' });
  expect(again.id).not.toBe(command.id);
  await close();
});

test('a draft is kept for its session across a reload', async () => {
  const { page, composer, close } = await idleAgent(site, 'compose-writer');
  await composer.fill('Half a thou');
  await page.reload();
  await expect.poll(() => composer.inputValue()).toBe('Half a thou');
  await close();
});

test('Ctrl+. in the composer interrupts the turn', async () => {
  const { agent, runner, page, sessionId, composer, close } = await idleAgent(site, 'compose-stopper');
  await agent.write(sessionId, [turnOf('RUN_STARTED', 'second', [])]);
  await composer.focus();
  await untilPressable(page.getByRole('button', { name: 'Interrupt' }));
  await page.keyboard.press('Control+.');
  const interrupt = await runner.next('interrupt');
  await page.getByRole('button', { name: 'Interrupting…' }).waitFor();
  expect(interrupt.body).toMatchObject({ turnId: 'second' });
  await runner.acknowledge(interrupt, 'done');
  await agent.write(sessionId, [
    { type: 'RUN_ERROR', threadId: 's', runId: 'second', message: 'aborted', code: 'interrupted' },
  ]);
  await page.getByRole('button', { name: /Interrupt/ }).waitFor({ state: 'hidden' });
  await close();
});

test('Esc moves from the composer to the transcript, keeps the draft and interrupts nothing', async () => {
  const { agent, runner, page, sessionId, composer, close } = await idleAgent(site, 'compose-escaper');
  await agent.write(sessionId, [turnOf('RUN_STARTED', 'second', [])]);
  await untilPressable(page.getByRole('button', { name: 'Interrupt' }));
  const posts: string[] = [];
  const note = (request: Request) => void (request.method() === 'POST' && posts.push(new URL(request.url()).pathname));
  page.on('request', note);
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
  // From the transcript, Esc moves to the list, where it does nothing.
  await page.keyboard.press('Escape');
  await page.waitForURL(`${site.server.url}/`);
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  page.off('request', note);
  expect(posts.filter((path) => path.endsWith('/interrupt'))).toEqual([]);
  expect(runner.commands).toEqual([]);
  await close();
});

test('a failure out of sight is shown where the reader is', async () => {
  const { agent, runner, page, sessionId, close } = await idleAgent(site, 'compose-distant');
  await agent.write(sessionId, [turnOf('RUN_STARTED', 'second', []), taskStarted('t1', 'Long watch')]);
  const card = page.getByRole('group', { name: 'Task Long watch: running' });
  await press(card.getByRole('button', { name: 'Stop “Long watch”' }));
  await press(card.getByRole('button', { name: 'Press again to stop “Long watch”' }));
  const stop = await runner.next('task.stop');
  await agent.write(sessionId, message('long', LONG_TEXT));
  await transcriptOf(page).evaluate((log) => log.scrollTo(0, log.scrollHeight));
  await expect.poll(() => card.evaluate((element) => element.getBoundingClientRect().bottom < 0)).toBe(true);
  await runner.acknowledge(stop, 'failed', 'no such task here');
  const alert = page.getByRole('alert').getByText(/no such task here/);
  await alert.waitFor();
  await page.getByRole('alert').getByRole('button', { name: 'Dismiss' }).click();
  await alert.waitFor({ state: 'hidden' });
  await close();
});
