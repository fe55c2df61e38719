import type { Locator, Page } from 'playwright-core';

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
