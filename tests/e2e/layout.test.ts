import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { layoutFaults, rowFaults } from '../support/layout-faults';
import {
  expectSoundLayout,
  nameWidths,
  openAt,
  READABLE_PX,
  SESSION_ROWS,
  SETTLED,
  writeLayoutScene,
} from '../support/layout-scene';
import { perFile, visitOwn } from '../support/visit';

const site = perFile(visitOwn);
beforeAll(async () => {
  await writeLayoutScene(site.server);
});
afterEach(async () => {
  // A failed test leaves its page open, which keeps working beside the others.
  for (const page of site.context.pages().slice(1)) await page.close();
});
afterAll(async () => {
  // The browser logs a missing page.
  site.complaints.splice(0, Infinity, ...site.complaints.filter((one) => !/404 \(Not Found\).*\/nowhere/.test(one)));
});

test.each([
  ['the start page', 1440],
  ['a busy session with its tasks', 1440],
  ['a session with a request', 1024],
  ['a session of 300 turns', 360],
  ['the log of an agent', 360],
])('%s clips no text, overlaps none and moves none at %i px', (name, width) => expectSoundLayout(site, name, [width]));

test('session rows keep their texts apart and their agents’ names readable at 360 px', async () => {
  const page = await openAt(site, '/', 360);
  await expect.poll(() => rowFaults(page, SESSION_ROWS), SETTLED).toEqual([]);
  await expect.poll(() => layoutFaults(page), SETTLED).toEqual([]);
  expect(Math.min(...(await nameWidths(page)))).toBeGreaterThanOrEqual(READABLE_PX);
  await page.close();
});
