import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { accessibilityViolations, violationsInBothThemes } from '../support/accessibility';
import { logOf, panelOf, showInLog, writeLong, writeRecorded } from '../support/log-page';
import { isFocused, live, transcriptOf } from '../support/transcript-page';
import { perFile, visit } from '../support/visit';

const RECORDED = 'time-lock-all-recorded';
const LONG = 'time-lock-all-long';

const site = perFile(visit);
beforeAll(async () => {
  await writeRecorded(site.server, RECORDED);
  await writeLong(site.server, LONG, 20);
});

/** Comes from another page, because a link to the current session keeps its state. */
async function open(session: string): Promise<Page> {
  await site.leave(await site.open('/agents'));
  const page = await site.open(`/sessions/${session}`);
  await transcriptOf(page).getByRole('article').first().waitFor();
  return page;
}

test('focuses a log requested while it loaded, unless the focus has moved meanwhile', async () => {
  const page = await open(LONG);
  await page.getByRole('button', { name: 'Log below the transcript' }).click();
  await logOf(page).waitFor();
  let answer = () => {};
  let held = Promise.resolve();
  await page.route(/\/logs\?/, async (route) => {
    await held;
    await route.continue();
  });
  const reloadedAndAsked = async () => {
    held = new Promise((resolve) => {
      answer = resolve;
    });
    await page.reload();
    await live(page);
    await panelOf(page).waitFor();
    expect(await logOf(page).count()).toBe(0);
    await page.keyboard.press('l');
    await expect.poll(() => isFocused(panelOf(page))).toBe(true);
  };
  await reloadedAndAsked();
  answer();
  await expect.poll(() => isFocused(logOf(page))).toBe(true);

  await reloadedAndAsked();
  const composer = page.getByRole('textbox', { name: `Message to “${LONG}-patient”` });
  await composer.focus();
  answer();
  await logOf(page).waitFor();
  expect(await isFocused(composer)).toBe(true);
  await composer.evaluate((field) => (field as HTMLElement).blur());
  await page.keyboard.press('l');
  await expect.poll(() => isFocused(logOf(page))).toBe(true);
  await page.keyboard.press('l');
  await logOf(page).waitFor({ state: 'hidden' });
  await site.leave(page);
});

test('has no axe violations with a turn chosen, wide or narrow', async () => {
  const page = await open(RECORDED);
  await showInLog(
    transcriptOf(page)
      .getByRole('article', { name: /^Between-run turn/ })
      .last(),
  ).click();
  await logOf(page).locator('[data-in-span]').first().click();
  await panelOf(page).getByText('that turn').waitFor();
  expect(await violationsInBothThemes(page)).toEqual([]);
  await page.setViewportSize({ width: 360, height: 740 });
  await page.getByRole('tab', { name: 'Log' }).click();
  await panelOf(page).waitFor();
  expect(await accessibilityViolations(page)).toEqual([]);
  await page.getByRole('tab', { name: 'Transcript' }).click();
  await site.leave(page);
});
