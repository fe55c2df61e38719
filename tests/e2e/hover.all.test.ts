import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectHoveredIcons, writeControls } from '../support/page-checks';
import { live } from '../support/transcript-page';
import { type OwnVisit, visitOwn } from '../support/visit';

const SESSION = 'hover-all';

let site: OwnVisit;
beforeAll(async () => {
  // Its lists are short: the test hovers each control.
  site = await visitOwn();
  await writeControls(site.server, SESSION);
});
afterAll(async () => {
  await site.close();
  expect(site.complaints).toEqual([]);
});

test.each([
  ['/', null],
  ['/agents', null],
  [`/sessions/${SESSION}`, /^Show in log/],
  [`/agents/${SESSION}/logs?regex=needle`, 'Next hit'],
])('controls keep their icons and contrast under the pointer in both themes: %s', async (path, last) => {
  const page = await site.load(path);
  await live(page);
  if (last !== null) await page.getByRole('button', { name: last }).first().waitFor();
  for (const colorScheme of ['light', 'dark'] as const) await expectHoveredIcons(page, colorScheme);
  await site.leave(page);
});
