import { beforeAll, expect, test } from 'vitest';
import { expectTableScrolls, writeTables } from '../support/page-checks';
import { transcriptOf } from '../support/transcript-page';
import { perFile, visit } from '../support/visit';

const SESSION = 'words-tables';

const it = perFile(visit);
beforeAll(async () => {
  await writeTables(it.server, SESSION);
});

test('a wide table scrolls in its own box and breaks no word', async () => {
  const page = await it.open(`/sessions/${SESSION}`);
  await page.setViewportSize({ width: 360, height: 900 });
  await expectTableScrolls(page);
  await it.leave(page);
});

test('text written from right to left starts at the right', async () => {
  const page = await it.open(`/sessions/${SESSION}`);
  await transcriptOf(page).getByText('lint').waitFor();
  const directions = await transcriptOf(page).evaluate((log) =>
    [...log.querySelectorAll('p, li, td, blockquote, ul')]
      .filter((element) => /^[^a-z]*[\u0590-\u06ff]/i.test(element.textContent ?? ''))
      .map((element) => getComputedStyle(element).direction),
  );
  expect(directions.length).toBeGreaterThan(6);
  expect(new Set(directions)).toEqual(new Set(['rtl']));
  await it.leave(page);
});
