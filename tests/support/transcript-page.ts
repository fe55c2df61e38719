import type { TranscriptPage } from '@interlude/protocol/read-models';
import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';

/** What a transcript shows, turn by turn, as the page has it. */
export interface ShownTurn {
  name: string;
  text: string;
}

export function transcriptOf(page: Page): Locator {
  return page.getByRole('log', { name: 'Transcript' });
}

/** Resolves once everything the server has is on the page and what comes will be. */
export async function live(page: Page): Promise<void> {
  await badgeOf(page).getByText('Live').waitFor();
}

export function badgeOf(page: Page): Locator {
  return page.getByRole('status', { name: 'Connection' }).filter({ visible: true });
}

/** Every turn that is laid out; in a window as high as the session that is every turn. */
export function shownTurns(page: Page): Promise<ShownTurn[]> {
  return transcriptOf(page)
    .locator('article')
    .evaluateAll((articles) =>
      articles.map((article) => ({
        name: article.getAttribute('aria-label') ?? '',
        // biome-ignore lint/performance/useDomNodeTextContent: what is shown counts, with its line breaks
        text: (article as HTMLElement).innerText,
      })),
    );
}

/** Where a turn stands below the transcript's upper edge, in pixels; null while it is not laid out. */
export function turnTop(page: Page, turnId: string): Promise<number | null> {
  return transcriptOf(page).evaluate((log, id) => {
    const turn = log.querySelector(`[data-turn="${CSS.escape(id)}"]`);
    return turn === null ? null : turn.getBoundingClientRect().top - log.getBoundingClientRect().top;
  }, turnId);
}

/** The first turn any part of which the reader sees. */
export function firstVisibleTurn(page: Page): Promise<string> {
  return transcriptOf(page).evaluate((log) => {
    const edge = log.getBoundingClientRect().top;
    const turns = [...log.querySelectorAll<HTMLElement>('[data-turn]')];
    const visible = turns.find((turn) => turn.getBoundingClientRect().bottom > edge + 1);
    return visible?.dataset.turn ?? '';
  });
}

export function isFocused(locator: Locator): Promise<boolean> {
  return locator.evaluate((element) => element === document.activeElement);
}

/** The words of the transcript, one space apart: markdown and line breaks do not count. */
export async function transcriptWords(page: Page): Promise<string> {
  const texts = await transcriptOf(page).allInnerTexts();
  return wordsIn(texts.join('\n')).join(' ');
}

export function wordsIn(text: string): string[] {
  return text.match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** The texts of the assistant's messages, in order. */
export function textsOf({ turns }: TranscriptPage): string[] {
  return turns.flatMap(({ items }) =>
    items.flatMap((item) => (item.kind === 'message' && item.role === 'assistant' ? [item.text] : [])),
  );
}

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
export function visibleText(page: Page): Promise<string> {
  return page.evaluate(() => {
    const badges = [...document.querySelectorAll<HTMLElement>('[role="status"][aria-label="Connection"]')];
    // biome-ignore lint/performance/useDomNodeTextContent: only visible text counts
    return badges.reduce((text, badge) => text.replace(badge.innerText, ''), document.body.innerText);
  });
}

/** Asserts that the page says how old it is, and that nothing else on it moves or counts. */
export async function expectFrozen(page: Page): Promise<void> {
  expect(await endlessAnimations(page)).toEqual([]);
  const age = badgeOf(page).getByText(/^\d+ s ago$/);
  // The first second is "just now".
  await age.waitFor();
  expect(await badgeOf(page).textContent()).toMatch(/as of \d\d:\d\d:\d\d, \d+ s ago$/);
  const [before, since] = [await visibleText(page), await age.textContent()];
  await expect.poll(() => age.textContent()).not.toBe(since);
  expect(await visibleText(page)).toBe(before);
}
