import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { badgeOf } from './transcript-page';

/** Resolves once the page says that its connection is broken. */
export const reconnecting = (page: Page) => badgeOf(page).getByText('Reconnecting').waitFor();

/** The names of all animations that run for as long as something goes on. */
export function endlessAnimations(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    document
      .getAnimations()
      .filter((one) => one.playState === 'running' && one.effect?.getComputedTiming().iterations === Infinity)
      .map((one) => (one as CSSAnimation).animationName),
  );
}

/** The visible text of the page, without the connection badge. */
export function wordsOf(page: Page): Promise<string> {
  return page.evaluate(() => {
    const badges = [...document.querySelectorAll<HTMLElement>('[role="status"][aria-label="Connection"]')];
    // biome-ignore lint/performance/useDomNodeTextContent: only visible text counts
    return badges.reduce((text, badge) => text.replace(badge.innerText, ''), document.body.innerText);
  });
}

/** Asserts that the page says how old it is, and that nothing else on it moves or counts. */
export async function standsStill(page: Page): Promise<void> {
  expect(await endlessAnimations(page)).toEqual([]);
  const age = badgeOf(page).getByText(/^\d+ s ago$/);
  // The first second is "just now".
  await age.waitFor();
  expect(await badgeOf(page).textContent()).toMatch(/as of \d\d:\d\d:\d\d, \d+ s ago$/);
  const [before, since] = [await wordsOf(page), await age.textContent()];
  await expect.poll(() => age.textContent()).not.toBe(since);
  expect(await wordsOf(page)).toBe(before);
}
