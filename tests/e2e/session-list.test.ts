import { afterAll, beforeAll, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { live } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';

const SESSIONS = 230;

let it: OwnVisit;
beforeAll(async () => {
  it = await visitOwn();
  const agent = new EventWriter(it.server, 'busy');
  await agent.writeMany(
    Array.from({ length: SESSIONS }, (_, at) => ({
      sessionId: `s${at}`,
      events: userTurn('r', `Question ${at}`, `Answer ${at}.`),
    })),
  );
  await agent.write(
    'urgent',
    [
      ...userTurn('r1', 'Deploy it', 'Done.'),
      { type: 'RUN_STARTED', threadId: 'urgent', runId: 'r2' },
      { type: 'RUN_ERROR', threadId: 'urgent', runId: 'r2', message: 'No disk left' },
    ],
    { at: Date.now() - 3_600_000 },
  );
});
afterAll(async () => {
  await it.close();
  expect(it.complaints).toEqual([]);
});

const rows = '[data-session-row]';

test('the page brings a hundred sessions, the most urgent first, and says how many there are', async () => {
  const page = await it.open('/');
  await live(page);
  expect(await page.locator(rows).count()).toBe(100);
  expect(await page.locator(rows).first().getAttribute('data-session-row')).toBe('urgent');
  await page.getByText(`100 of ${SESSIONS + 1} sessions`).waitFor();
  await page.getByRole('heading', { name: `Idle 99 of ${SESSIONS}` }).waitFor();
  await page.close();
});

test('more are shown when asked for, each once, until all are there', async () => {
  const page = await it.open('/');
  await live(page);
  await page.getByRole('button', { name: 'Show more' }).click();
  await expect.poll(() => page.locator(rows).count()).toBe(200);
  await page.getByRole('button', { name: 'Show more' }).click();
  await expect.poll(() => page.locator(rows).count()).toBe(SESSIONS + 1);
  await page.getByRole('button', { name: 'Show more' }).waitFor({ state: 'detached' });
  const ids = await page.locator(rows).evaluateAll((all) => all.map((row) => (row as HTMLElement).dataset.sessionRow));
  expect(new Set(ids).size).toBe(SESSIONS + 1);
  await page.close();
});

test('the keys of the list lead to its end and on', async () => {
  const page = await it.open('/');
  await live(page);
  await page.locator(rows).last().focus();
  await page.keyboard.press('j');
  const focused = () => page.evaluate(() => document.activeElement?.textContent ?? '');
  expect(await focused()).toBe('Show more');
  await page.keyboard.press('Enter');
  await expect.poll(() => page.locator(rows).count()).toBe(200);
  await expect.poll(focused).toBe('Show more');
  await page.keyboard.press('k');
  expect(await page.evaluate(() => (document.activeElement as HTMLElement).dataset.sessionRow)).toBeDefined();
  await page.close();
});

test('a session that is new comes in, and is counted', async () => {
  const page = await it.open('/');
  await live(page);
  await new EventWriter(it.server, 'another').write('brand-new', userTurn('r', 'Hello', 'Hello.'));
  await page.locator('[data-session-row="brand-new"]').waitFor();
  await page.getByRole('heading', { name: `of ${SESSIONS + 1}` }).waitFor();
  await page.close();
});

test.each([
  [360, 'light'],
  [1024, 'dark'],
  [1680, 'light'],
] as const)('the end of the list at %i wide, %s', async (width, colorScheme) => {
  const page = await it.open('/');
  await page.setViewportSize({ width, height: 800 });
  await page.emulateMedia({ colorScheme });
  await live(page);
  await page.getByRole('button', { name: 'Show more' }).scrollIntoViewIfNeeded();
  if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/list-${width}-${colorScheme}.png` });
  const isWider = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  expect(isWider).toBe(false);
  await page.close();
});
