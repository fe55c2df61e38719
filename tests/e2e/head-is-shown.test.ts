import { expect, test } from 'vitest';
import { allowOf, pinnedOf } from '../support/agent-pages';
import { expectPinnedUntilRead, openCommandRequest } from '../support/permission-card';
import { untilPressable } from '../support/press';
import { transcriptOf } from '../support/transcript-page';
import { perFile, visit } from '../support/visit';

const site = perFile(visit);

const REPLY = Array.from({ length: 20 }, (_, index) => `Line ${index}`).join('\n\n');

test('pins a request whose head is out of view, and enables Allow only once its head was seen', () =>
  expectPinnedUntilRead(site, 1280, 800, REPLY));

test('pins a request only while the window is too small for it in its place', async () => {
  const { page, close } = await openCommandRequest(site, 1280, 720, null);
  const card = transcriptOf(page).getByRole('region', { name: 'Permission: “Tidy up”' });
  await untilPressable(allowOf(card));
  expect(await pinnedOf(page).count()).toBe(0);
  await page.setViewportSize({ width: 1280, height: 300 });
  await pinnedOf(page).waitFor();
  await page.setViewportSize({ width: 1280, height: 720 });
  await transcriptOf(page).evaluate((log) => log.scrollTo(0, log.scrollHeight));
  await expect.poll(() => pinnedOf(page).count()).toBe(0);
  await close();
});
