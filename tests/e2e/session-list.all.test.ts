import { beforeAll, expect, test } from 'vitest';
import { violationsInBothThemes } from '../support/accessibility';
import { EventWriter } from '../support/event-writer';
import { userTurn } from '../support/turn-events';
import { perFile, visitOwn } from '../support/visit';

/** More than one page of the list. */
const SESSIONS = 130;

const site = perFile(visitOwn);
beforeAll(async () => {
  const agent = new EventWriter(site.server, 'crowd');
  await agent.writeMany(
    Array.from({ length: SESSIONS }, (_, index) => ({
      sessionId: `crowd-${index}`,
      events: userTurn('r1', `Errand ${index}`, 'Ran it.'),
    })),
  );
  await agent.write('broken', [
    ...userTurn('r1', 'Survey the old quarry', 'Nothing but stone.'),
    { type: 'RUN_STARTED', threadId: 'broken', runId: 'r2' },
    { type: 'RUN_ERROR', threadId: 'broken', runId: 'r2', message: 'The quarry is flooded' },
  ]);
});

test.each([
  [360, 'light'],
  [1024, 'dark'],
  [1680, 'light'],
] as const)('the end of the list fits %i px, %s', async (width, colorScheme) => {
  const page = await site.open('/');
  await page.setViewportSize({ width, height: 800 });
  await page.emulateMedia({ colorScheme });
  await page.getByRole('button', { name: 'Show more' }).scrollIntoViewIfNeeded();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
  await site.leave(page);
});

test.each([360, 1280])('a search narrowed by state and agent has no axe violation at %i px', async (width) => {
  const page = await site.load('/?q=quarry&state=failed&agent=crowd');
  await page.setViewportSize({ width, height: 800 });
  await page.locator('[data-session-row="broken"]').waitFor();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
  expect(await violationsInBothThemes(page)).toEqual([]);
  await page.close();
});
