import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { isFocused, live, transcriptOf } from '../support/transcript-page';
import { message, toolCall, userTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';

/** A session whose newest turn is too much to come with its page, which asks for it by itself. */
let it: OwnVisit;
beforeAll(async () => {
  it = await visitOwn();
  const args = Object.fromEntries(Array.from({ length: 4_900 }, (_, at) => [`k${at}`, at]));
  const calls = ['c1', 'c2', 'c3', 'c4', 'c5'].flatMap((id) => toolCall(id, 'Set', args, 'done'));
  const work = [...calls, ...message('m1', 'All of it is set.')];
  const agent = new EventWriter(it.server, 'agent');
  await agent.write('large', [...userTurn('r1', 'Say much', 'Much. '.repeat(500)), ...userTurn('r2', 'Set it', work)]);
});
afterAll(() => it.close());

/** The page with what its transcript is asked for answered by `answer`, until that lets it through. */
async function open(answer: () => { status: number; words: string } | null): Promise<Page> {
  const page = await it.context.newPage();
  await page.route('**/transcript?*', (route) => {
    const refusal = answer();
    if (refusal === null) return route.continue();
    const { status, words } = refusal;
    return route.fulfill({ status, json: { error: { code: 'test', message: words } } });
  });
  await page.goto(`${it.server.url}/sessions/large`);
  return page;
}

const answerIn = (page: Page) => transcriptOf(page).getByText('All of it is set.');

test('the page says what it loads, why it takes long, and what to do once it has given up', async () => {
  let refusal: { status: number; words: string } | null = { status: 503, words: 'The database is busy.' };
  const page = await open(() => refusal);
  await page.getByText('Loading the transcript').waitFor();
  await page.getByText('The database is busy. The page tries again by itself.').waitFor();
  const field = page.getByRole('textbox', { name: 'Message' });
  const before = await field.boundingBox();
  refusal = { status: 400, words: 'It can’t be read.' };
  await page.getByText('The transcript is not loaded.').waitFor();
  expect(await field.boundingBox()).toEqual(before);

  refusal = null;
  await page.getByRole('button', { name: 'Try again' }).focus();
  await page.keyboard.press('Enter');
  await answerIn(page).waitFor();
  await expect.poll(() => isFocused(transcriptOf(page))).toBe(true);
  expect(await field.boundingBox()).toEqual(before);
  await live(page);
  await expect
    .poll(() => transcriptOf(page).evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight))
    .toBeLessThan(2);
  await page.close();
});

test('who writes meanwhile is not disturbed', async () => {
  let isHeld = true;
  const page = await open(() => (isHeld ? { status: 503, words: 'The database is busy.' } : null));
  const field = page.getByRole('textbox', { name: 'Message' });
  await field.fill('half a mess');
  await page.getByText('The page tries again').waitFor();
  isHeld = false;
  await answerIn(page).waitFor();
  await page.keyboard.type('age');
  expect(await field.inputValue()).toBe('half a message');
  await page.close();
});
