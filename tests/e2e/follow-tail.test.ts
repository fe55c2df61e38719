import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import { EventWriter } from '../support/event-writer';
import { live, transcriptOf } from '../support/transcript-page';
import { message, userTurn } from '../support/turn-events';
import { type Visit, visit } from '../support/visit';

let it: Visit;
beforeAll(async () => {
  it = await visit();
});
afterAll(async () => {
  await it.close();
  expect(it.complaints).toEqual([]);
});

const LONG = Array.from({ length: 60 }, (_, at) => `Paragraph ${at} of the answer.`).join('\n\n');

/** A question that waits stands outside any turn; the turn that answers it takes its place, and is much taller. */
async function asked(name: string) {
  const agent = new EventWriter(it.server, name);
  const sessionId = `${name}-session`;
  const earlier = Array.from({ length: 30 }, (_, at) => userTurn(`r${at}`, `Question ${at}`, `Answer ${at}.`));
  await agent.write(sessionId, [...earlier.flat(), ...message('q', 'The question that waits', 'user')]);
  const page = await it.open(`/sessions/${sessionId}`);
  await live(page);
  await transcriptOf(page).getByText('The question that waits').waitFor();
  const interlude = { turn: 'user' as const, userMessageIds: ['q'] };
  const answer: AgUiEvent[] = [
    { type: 'RUN_STARTED', threadId: 's', runId: 'last', metadata: { interlude } },
    ...message('a', `${LONG}\n\nThe last word.`),
    { type: 'RUN_FINISHED', threadId: 's', runId: 'last', metadata: { interlude } },
  ];
  return { page, write: () => agent.write(sessionId, answer) };
}

const distanceFromEnd = (page: Page) =>
  transcriptOf(page).evaluate((log) => log.scrollHeight - log.scrollTop - log.clientHeight);

test('a reader at the end stays there when a taller turn takes the place of the last one', async () => {
  const { page, write } = await asked('follower');
  await expect.poll(() => distanceFromEnd(page)).toBeLessThanOrEqual(1);
  await write();
  await page.locator('[data-turn="last"]').waitFor();
  const last = transcriptOf(page).getByText('The last word.');
  await expect
    .poll(() => last.isVisible().then(async (shown) => shown && (await distanceFromEnd(page))))
    .toBeLessThanOrEqual(1);
  await expect.poll(() => last.evaluate((words) => words.getBoundingClientRect().bottom <= innerHeight)).toBe(true);
  await page.close();
});

test('a reader further up is left where they read, and told that there is more', async () => {
  const { page, write } = await asked('reader');
  await transcriptOf(page).hover();
  await page.mouse.wheel(0, -900);
  await expect.poll(() => distanceFromEnd(page)).toBeGreaterThan(400);
  const place = () => transcriptOf(page).evaluate((log) => log.scrollTop);
  const before = await place();
  await write();
  await page.getByRole('button', { name: /new|latest/i }).waitFor();
  expect(Math.abs((await place()) - before)).toBeLessThanOrEqual(2);
  await page.close();
});

test('a reader at the end stays there when what stands below takes height from the transcript, and gives it back', async () => {
  const { page } = await asked('writer');
  await expect.poll(() => distanceFromEnd(page)).toBeLessThanOrEqual(1);
  const height = () => transcriptOf(page).evaluate((log) => log.clientHeight);
  const before = await height();
  await page.locator('textarea').fill('One line\n'.repeat(8));
  await expect.poll(height).toBeLessThan(before - 40);
  await expect.poll(() => distanceFromEnd(page)).toBeLessThanOrEqual(1);
  await page.locator('textarea').fill('');
  await expect.poll(height).toBe(before);
  await expect.poll(() => distanceFromEnd(page)).toBeLessThanOrEqual(1);
  await page.close();
});
