import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { live } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { clearSettings, perFile, visit } from '../support/visit';

const site = perFile(visit);
beforeAll(async () => {
  await new EventWriter(site.server, 'appearance-agent').write(
    'appearance-s',
    userTurn('r1', 'Build it', 'It builds.'),
  );
});

/** The theme and density in effect, as one string; null while the parser is still inside the row. */
const look = () => {
  const row = document.querySelector('[data-session-row="appearance-s"]');
  let parsed = row;
  while (parsed !== null && parsed.nextSibling === null) parsed = parsed.parentElement;
  if (row === null || parsed === null) return null;
  const { backgroundColor } = getComputedStyle(document.body);
  return `${backgroundColor} ${row.getBoundingClientRect().height}`;
};

/** Records each look that differs from the one before, frame by frame, and shifts of the layout. */
const record = `(() => {
  const look = ${look};
  const seen = window.seenLooks = [];
  window.shifted = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.shifted += entry.value;
  }).observe({ type: 'layout-shift', buffered: true });
  const step = () => {
    const now = document.body && look();
    if (now && now !== seen.at(-1)) seen.push(now);
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})()`;

const seen = (page: Page) =>
  page.evaluate(() => {
    const { seenLooks, shifted } = window as unknown as { seenLooks: string[]; shifted: number };
    return { seenLooks, isStill: shifted < 0.01 };
  });

async function choose(page: Page, ...names: string[]) {
  for (const name of names) await page.getByRole('radio', { name, exact: true }).check({ force: true });
}

test('a chosen theme and density are there in the first frame, and nothing shifts when the scripts start', async () => {
  const plain = await site.load('/');
  await plain.emulateMedia({ colorScheme: 'light' });
  await live(plain);
  const usual = await plain.evaluate(look);
  // The browser may paint the rows before it has read the preview, which comes after them.
  await plain.locator('[data-preview]').evaluate((pane: HTMLElement) => pane.style.setProperty('display', 'none'));
  expect(await plain.evaluate(look)).toBe(usual);
  await plain.close();
  const settings = await site.load('/settings/appearance');
  await settings.emulateMedia({ colorScheme: 'light' });
  await live(settings);
  await choose(settings, 'Dark', 'Compact');
  await settings.locator('html.dark[data-density="compact"]').waitFor();

  const page = await site.context.newPage();
  await page.emulateMedia({ colorScheme: 'light' });
  await page.addInitScript(record);
  await page.goto(site.server.url);
  await live(page);
  const { seenLooks, isStill } = await seen(page);
  expect(seenLooks).toHaveLength(1);
  expect(isStill).toBe(true);
  const [colour, height] = (usual as string).split(/ (?=\S+$)/);
  expect(seenLooks[0]).not.toContain(colour as string);
  expect(Number(seenLooks[0]?.split(' ').at(-1))).toBeLessThan(Number(height));

  // In another tab, at once.
  await choose(settings, 'Light', 'Comfortable');
  await expect.poll(() => page.evaluate(look)).toBe(usual);
  await page.evaluate(clearSettings);
  for (const one of [page, settings]) await one.close();
});
