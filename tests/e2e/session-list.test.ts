import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { live } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { perFile, visitOwn } from '../support/visit';

/** More than two pages of the list. */
const SESSIONS = 230;

const site = perFile(visitOwn);
let agent: EventWriter;
beforeAll(async () => {
  agent = new EventWriter(site.server, 'crowd');
  await agent.write('first-of-all', userTurn('r1', 'Survey the old quarry', 'Nothing but stone.'));
  await agent.writeMany(
    Array.from({ length: SESSIONS }, (_, index) => ({
      sessionId: `crowd-${index}`,
      events: userTurn('r1', `Errand ${index}`, 'Ran it.'),
    })),
  );
  const started = { type: 'RUN_STARTED', threadId: 'urgent', runId: 'r2' } as const;
  const failed = { type: 'RUN_ERROR', threadId: 'urgent', runId: 'r2', message: 'The quarry is flooded' } as const;
  await agent.write('urgent', [...userTurn('r1', 'Deploy it', 'Done.'), started, failed], {
    at: Date.now() - 3_600_000,
  });
});

const rows = (page: Page) => page.locator('[data-session-row]');
const ids = (page: Page) =>
  rows(page).evaluateAll((all) => all.map((one) => (one as HTMLElement).dataset.sessionRow ?? '').sort());

test('the start page shows the hundred most urgent sessions, counts all, and keys reach every one of them', async () => {
  const page = await site.open('/');
  await live(page);
  expect(await rows(page).count()).toBe(100);
  expect(await rows(page).first().getAttribute('data-session-row')).toBe('urgent');
  await page.getByText(`100 of ${SESSIONS + 2} sessions`).waitFor();
  await page.getByRole('heading', { name: `Idle ${SESSIONS + 1}` }).waitFor();

  await rows(page).last().focus();
  await page.keyboard.press('j');
  const focused = () => page.evaluate(() => document.activeElement?.textContent ?? '');
  expect(await focused()).toBe('Show more');
  await page.keyboard.press('Enter');
  await expect.poll(() => rows(page).count()).toBe(200);
  await expect.poll(focused).toBe('Show more');
  await page.keyboard.press('k');
  expect(await page.evaluate(() => (document.activeElement as HTMLElement).dataset.sessionRow)).toBeDefined();
  await page.getByRole('button', { name: 'Show more' }).click();
  await expect.poll(() => rows(page).count()).toBe(SESSIONS + 2);
  await page.getByRole('button', { name: 'Show more' }).waitFor({ state: 'detached' });
  expect(new Set(await ids(page)).size).toBe(SESSIONS + 2);
  await site.leave(page);
});

test('a search finds a session that is not loaded, keeps it current, and is part of the address', async () => {
  const page = await site.load('/');
  await live(page);
  expect(await page.locator('[data-session-row="first-of-all"]').count()).toBe(0);
  await page.getByRole('searchbox', { name: 'Search sessions' }).fill('QUARRY');
  await expect.poll(() => ids(page)).toEqual(['first-of-all', 'urgent']);
  await expect.poll(() => new URL(page.url()).search).toBe('?q=QUARRY');
  await agent.write('first-of-all', [
    { type: 'RUN_STARTED', threadId: 'first-of-all', runId: 'r2' },
    { type: 'RUN_ERROR', threadId: 'first-of-all', runId: 'r2', message: 'Rain in the quarry' },
  ]);
  await rows(page).getByText('Rain in the quarry').waitFor();

  const other = await site.load('/?q=quarry+rain');
  await expect.poll(() => ids(other)).toEqual(['first-of-all']);
  expect(await other.getByRole('searchbox', { name: 'Search sessions' }).inputValue()).toBe('quarry rain');
  await other.locator('[data-session-row="first-of-all"]').click();
  await other.waitForURL('**/sessions/first-of-all');
  await other.goBack();
  await expect.poll(() => ids(other)).toEqual(['first-of-all']);
  await other.close();
  await page.close();
});
