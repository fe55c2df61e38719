import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { isFocused, live, transcriptOf } from '../support/transcript-page';
import { message, toolCall, userTurn } from '../support/turn-events';
import { perFile, visit } from '../support/visit';

/** A session whose newest turn is too large for its page, which loads it afterwards. */
const SESSION = 'large-transcript';

// The tests of this file answer some requests with 400 and 503.
const site = perFile(visit, /status of (503|400)/);
beforeAll(async () => {
  const args = Object.fromEntries(Array.from({ length: 4_900 }, (_, index) => [`k${index}`, index]));
  const calls = ['c1', 'c2', 'c3', 'c4', 'c5'].flatMap((id) => toolCall(id, 'Set', args, 'done'));
  const work = [...calls, ...message('m1', 'All of it is set.')];
  const agent = new EventWriter(site.server, SESSION);
  await agent.write(SESSION, [...userTurn('r1', 'Say much', 'Much. '.repeat(500)), ...userTurn('r2', 'Set it', work)]);
});

/** Loads the page. `answer` refuses requests for its transcript; null lets them through. */
async function open(answer: () => { status: number; words: string } | null): Promise<Page> {
  const page = await site.context.newPage();
  await page.route('**/transcript?*', (route) => {
    const refusal = answer();
    if (refusal === null) return route.continue();
    const { status, words } = refusal;
    return route.fulfill({ status, json: { error: { code: 'test', message: words } } });
  });
  await page.goto(`${site.server.url}/sessions/${SESSION}`);
  return page;
}

const answerIn = (page: Page) => transcriptOf(page).getByText('All of it is set.');

test('shows why a large transcript is missing, and loads it on retry, at its end and with the focus', async () => {
  let refusal: { status: number; words: string } | null = { status: 503, words: 'The database is busy.' };
  const page = await open(() => refusal);
  await page.getByText('Loading the transcript').waitFor();
  await page.getByText('The database is busy. Retrying automatically.').waitFor();
  const field = page.getByRole('textbox', { name: 'Message' });
  const before = await field.boundingBox();
  refusal = { status: 400, words: 'It can’t be read.' };
  await page.getByText('The transcript could not be loaded.').waitFor();
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
