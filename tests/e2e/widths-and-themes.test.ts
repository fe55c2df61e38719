import { beforeAll, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { expectTableScrolls, horizontalOverflows, WIDE_MESSAGE, writeTables } from '../support/page-checks';
import { live, transcriptOf } from '../support/transcript-page';
import { taskStarted, userTurn } from '../support/turn-events';
import { clearSettings, perFile, visit } from '../support/visit';

const AGENT = `widths-${'w'.repeat(190)}`;
const TABLES = 'words-tables';

const site = perFile(visit);

beforeAll(async () => {
  await writeTables(site.server, TABLES);
  const agent = new EventWriter(site.server, AGENT);
  await agent.write('widths-wide', userTurn('r1', `${'w'.repeat(200)} and on`, WIDE_MESSAGE));
  await agent.write(
    'widths-tasks',
    userTurn('r1', 'Watch it', [
      ...Array.from({ length: 60 }, (_, index) => taskStarted(`t${index}`, `Watch ${index}`)),
    ]),
  );
});

test('no page scrolls sideways at 360 px, whatever its content', async () => {
  const page = await site.open('/sessions/widths-wide');
  await page.setViewportSize({ width: 360, height: 800 });
  await transcriptOf(page).getByRole('table').waitFor();
  expect(await horizontalOverflows(page)).toEqual([]);
  await site.leave(page);
  for (const path of ['/', '/agents', `/agents/${AGENT}`, `/agents/${AGENT}/logs`, '/inbox', '/settings/audit']) {
    const next = await site.open(path);
    await next.setViewportSize({ width: 360, height: 800 });
    await next.getByRole('heading').filter({ visible: true }).first().waitFor();
    expect([path, await horizontalOverflows(next)]).toEqual([path, []]);
    await site.leave(next);
  }
});

test('the list gives way to a session at 360 px, whose back link returns to the list', async () => {
  const page = await site.open(`/?agent=${AGENT}`);
  await page.setViewportSize({ width: 360, height: 800 });
  const nav = page.getByRole('navigation', { name: 'Sessions' });
  await nav.locator('[data-session-row="widths-tasks"]').click();
  await transcriptOf(page).getByRole('article', { name: 'User turn' }).first().waitFor();
  expect(await nav.isVisible()).toBe(false);
  await page.getByRole('tab', { name: /^Tasks/ }).click();
  await page.getByRole('complementary', { name: 'Tasks' }).getByRole('link').first().click();
  await transcriptOf(page)
    .getByRole('group', { name: /^Task / })
    .first()
    .waitFor();
  await page.getByRole('main').getByRole('link', { name: 'Sessions', exact: true }).click();
  await nav.getByRole('link').first().waitFor();
  expect(await transcriptOf(page).isVisible()).toBe(false);
  await site.leave(page);
});

test('a chosen theme survives a reload, whatever the system prefers', async () => {
  const page = await site.load('/');
  await page.emulateMedia({ colorScheme: 'light' });
  await live(page);
  await page.getByRole('button', { name: 'Theme: system. Change to light' }).click();
  await page.getByRole('button', { name: 'Theme: light. Change to dark' }).click();
  await page.getByRole('button', { name: 'Theme: dark. Change to system' }).waitFor();
  await page.reload();
  await page.locator('html.dark').waitFor();
  expect(await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme)).toBe('dark');
  await live(page);
  await page.getByRole('button', { name: 'Theme: dark. Change to system' }).click();
  await page.locator('html.light').waitFor();
  await page.evaluate(clearSettings);
  await page.close();
});

test('a wide table scrolls in its own box and breaks no word', async () => {
  const page = await site.open(`/sessions/${TABLES}`);
  await page.setViewportSize({ width: 360, height: 900 });
  await expectTableScrolls(page);
  await site.leave(page);
});

test('right-to-left text starts at the right', async () => {
  const page = await site.open(`/sessions/${TABLES}`);
  await transcriptOf(page).getByText('lint').waitFor();
  const directions = await transcriptOf(page).evaluate((log) =>
    [...log.querySelectorAll('p, li, td, blockquote, ul')]
      .filter((element) => /^[^a-z]*[\u0590-\u06ff]/i.test(element.textContent ?? ''))
      .map((element) => getComputedStyle(element).direction),
  );
  expect(directions.length).toBeGreaterThan(6);
  expect(new Set(directions)).toEqual(new Set(['rtl']));
  await site.leave(page);
});
