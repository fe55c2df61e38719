import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { removeTurnsBefore } from '../support/server-data';
import { firstVisibleTurn, isFocused, live, transcriptOf, turnTop } from '../support/transcript-page';
import { message, userTurn } from '../support/turn-events';
import { perFile, visit } from '../support/visit';

const site = perFile(visit);

const LONG = Array.from({ length: 60 }, (_, index) => `Paragraph ${index} of the answer.`).join('\n\n');

/** A page at its end with a queued question. `write` replaces it with its turn, which is much taller. */
async function openAtQuestion(short: string) {
  const name = `follow-tail-${short}`;
  const agent = new EventWriter(site.server, name);
  const sessionId = `${name}-session`;
  const earlier = Array.from({ length: 30 }, (_, index) =>
    userTurn(`r${index}`, `Question ${index}`, `Answer ${index}.`),
  );
  await agent.write(sessionId, [...earlier.flat(), ...message('q', 'The question that waits', 'user')]);
  const page = await site.open(`/sessions/${sessionId}`);
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

test('stays at the end when a taller turn replaces the last one', async () => {
  const { page, write } = await openAtQuestion('follower');
  await expect.poll(() => distanceFromEnd(page)).toBeLessThanOrEqual(1);
  await write();
  await page.locator('[data-turn="last"]').waitFor();
  const last = transcriptOf(page).getByText('The last word.');
  await expect
    .poll(() => last.isVisible().then(async (isShown) => isShown && (await distanceFromEnd(page))))
    .toBeLessThanOrEqual(1);
  await expect.poll(() => last.evaluate((element) => element.getBoundingClientRect().bottom <= innerHeight)).toBe(true);
  await site.leave(page);
});

test('keeps the reader’s scroll position, and announces new content', async () => {
  const { page, write } = await openAtQuestion('reader');
  await transcriptOf(page).hover();
  await page.mouse.wheel(0, -900);
  await expect.poll(() => distanceFromEnd(page)).toBeGreaterThan(400);
  const place = () => transcriptOf(page).evaluate((log) => log.scrollTop);
  const before = await place();
  await write();
  await page.getByRole('button', { name: /new|latest/i }).waitFor();
  expect(Math.abs((await place()) - before)).toBeLessThanOrEqual(2);
  await site.leave(page);
});

test('stays at the end while the composer grows and shrinks', async () => {
  const { page } = await openAtQuestion('writer');
  await expect.poll(() => distanceFromEnd(page)).toBeLessThanOrEqual(1);
  const height = () => transcriptOf(page).evaluate((log) => log.clientHeight);
  const before = await height();
  await page.locator('textarea').fill('One line\n'.repeat(8));
  await expect.poll(height).toBeLessThan(before - 40);
  await expect.poll(() => distanceFromEnd(page)).toBeLessThanOrEqual(1);
  await page.locator('textarea').fill('');
  await expect.poll(height).toBe(before);
  await expect.poll(() => distanceFromEnd(page)).toBeLessThanOrEqual(1);
  await site.leave(page);
});

describe('when the oldest turns are removed', () => {
  /** A page with sixty turns loaded. `remove` removes the first `oldCount`. */
  async function readBack(short: string, oldCount: number) {
    const name = `follow-tail-${short}`;
    const agent = new EventWriter(site.server, name);
    const turns = Array.from({ length: 60 }, (_, index) =>
      userTurn(`r${index}`, `Question ${index}`, `Answer ${index}.`),
    );
    await agent.write(name, turns.slice(0, oldCount).flat());
    const isOld = Date.now() + 1;
    await expect.poll(() => Date.now()).toBeGreaterThan(isOld);
    await agent.write(name, turns.slice(oldCount).flat());
    const page = await site.open(`/sessions/${name}`);
    await live(page);
    const top = transcriptOf(page).getByRole('paragraph').first();
    const atTop = async () => {
      await transcriptOf(page).focus();
      await page.keyboard.press('Home');
      return top.textContent();
    };
    const scrollTop = () => transcriptOf(page).evaluate((log) => log.scrollTop);
    await expect.poll(async () => [await atTop(), await scrollTop()]).toEqual(['Beginning of the session', 0]);
    const goTo = async (turnId: string) => {
      await page.evaluate((id) => {
        location.hash = `turn-${id}`;
      }, turnId);
      await expect.poll(() => isFocused(page.locator(`[id="turn-${turnId}"]`))).toBe(true);
    };
    return { page, top, atTop, goTo, remove: () => removeTurnsBefore(site.server, isOld) };
  }

  test('keeps the reader’s turn in place, and says above how many are gone, live and reloaded', async () => {
    const { page, top, atTop, goTo, remove } = await readBack('reads', 20);
    await goTo('r40');
    const before = await turnTop(page, 'r40');
    await remove();
    await expect.poll(() => top.textContent()).toMatch(/^20 older turns were removed on or before \d+ \w+ \d{4}$/);
    expect(Math.abs(Number(await turnTop(page, 'r40')) - Number(before))).toBeLessThanOrEqual(2);

    const firstText = (await atTop()) ?? '';
    await expect.poll(() => firstVisibleTurn(page)).toBe('r20');
    await expect.poll(() => transcriptOf(page).evaluate((log) => log.scrollTop)).toBe(0);
    await page.goto(`${site.server.url}/sessions/follow-tail-reads`);
    await live(page);
    await expect.poll(atTop).toBe(firstText);
    await page.goto(`${site.server.url}/sessions/follow-tail-reads?again#turn-r3`);
    const notice = page.getByRole('status', { name: 'Link', exact: true });
    await notice.getByText('It may have been removed with the oldest turns.').waitFor();
    // An address with an anchor was loaded there.
    await page.close();
  });

  test('moves a reader of a removed turn, with the focus, to the oldest remaining one', async () => {
    const { page, goTo, remove } = await readBack('reads-old', 40);
    await goTo('r10');
    await remove();
    await expect.poll(() => firstVisibleTurn(page)).toBe('r40');
    await expect.poll(() => transcriptOf(page).evaluate((log) => log.scrollTop)).toBe(0);
    expect(await isFocused(transcriptOf(page))).toBe(true);
    await site.leave(page);
  });
});
