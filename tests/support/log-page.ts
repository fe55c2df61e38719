import type { Locator, Page } from 'playwright-core';

/** The box of an agent's log. The server's markup, which is busy until the browser replaces it, is not it. */
export function logOf(page: Page): Locator {
  return page.getByRole('log', { name: 'Agent log' }).and(page.locator(':not([aria-busy])'));
}

/** The first line with this text that is laid out. */
export function lineOf(page: Page, text: string | RegExp): Locator {
  return logOf(page).locator('[data-line]').filter({ hasText: text }).first();
}

export function followSwitch(page: Page): Locator {
  return page.getByRole('switch', { name: 'Follow' });
}

/** Pixels between the lower edge of what is in view and the end of the log. */
export function distanceFromEnd(page: Page): Promise<number> {
  return logOf(page).evaluate((log) => log.scrollHeight - log.scrollTop - log.clientHeight);
}

/** The first `line <number>` that is in view as a whole, and its place in the box, in pixels. */
export function firstSeen(page: Page): Promise<{ text: string; top: number }> {
  return logOf(page).evaluate((log) => {
    const edge = log.getBoundingClientRect().top;
    const rows = [...log.querySelectorAll<HTMLElement>('[data-line]')]
      .map((row) => ({
        text: /line \d+$/.exec(row.textContent)?.[0] ?? '',
        top: row.getBoundingClientRect().top - edge,
      }))
      .filter(({ top }) => top >= 0)
      .sort((a, b) => a.top - b.top);
    return rows[0] ?? { text: '', top: Number.NaN };
  });
}

/** The numbers of the `line <number>` rows that are laid out, from top to bottom; NaN for one that is not loaded. */
export async function shownNumbers(page: Page): Promise<number[]> {
  return logOf(page)
    .locator('[data-row]')
    .evaluateAll((elements) =>
      elements
        .map((element) => ({ top: element.getBoundingClientRect().top, text: element.textContent ?? '' }))
        .sort((a, b) => a.top - b.top)
        .map(({ text }) => Number(/line (\d+)$/.exec(text)?.[1])),
    );
}

/** Scrolls to a share of the log's height, as its scrollbar does. */
export function scrollToShare(page: Page, share: number): Promise<void> {
  return logOf(page).evaluate(
    (log, part) => log.scrollTo({ top: (log.scrollHeight - log.clientHeight) * part }),
    share,
  );
}
