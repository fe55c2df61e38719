import type { Locator } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { expectNoFaults, SETTLED } from '../support/layout-faults';
import {
  expectSoundLayout,
  nameWidths,
  openAt,
  READABLE_PX,
  SESSION_ROWS,
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
  await expectNoFaults(page, { rows: SESSION_ROWS });
  await expectNoFaults(page);
  expect(Math.min(...(await nameWidths(page)))).toBeGreaterThanOrEqual(READABLE_PX);
  await page.close();
});

test('a session’s transcript, tasks and details begin at the same edge beside the list of tasks', async () => {
  const page = await openAt(site, '/sessions/busy', 1680);
  const leftOf = (content: Locator) => content.boundingBox().then((box) => box && Math.round(box.x));
  const edge = await leftOf(page.getByRole('textbox', { name: /^Message to/ }).locator('xpath=ancestor::form/div'));
  const show = (tab: string) => page.getByRole('tab', { name: tab }).click();
  await show('Tasks');
  const tasks = page.getByRole('tabpanel', { name: 'Tasks' }).getByRole('listitem').first().getByRole('link');
  await expect.poll(() => leftOf(tasks), SETTLED).toBe(edge);
  await show('Details');
  const details = page.getByRole('tabpanel', { name: 'Details' }).locator('.session-column');
  await expect.poll(() => leftOf(details), SETTLED).toBe(edge);
  await page.close();
});
