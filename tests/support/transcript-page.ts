import type { TranscriptPage } from '@interlude/protocol/read-models';
import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import type { EventWriter } from './event-writer';
import { press } from './press';

/** A turn as shown on the page. */
interface ShownTurn {
  name: string;
  text: string;
}

export function transcriptOf(page: Page): Locator {
  return page.getByRole('log', { name: 'Transcript' });
}

/** Resolves once the page is caught up and live, and its parts listen to keys: they hydrate one after the other. */
export async function live(page: Page): Promise<void> {
  await badgeOf(page).getByText('Live').waitFor();
  await page.waitForFunction(() =>
    [...document.querySelectorAll('main, [role=main], #content')].every((part) => {
      const [control] = part.querySelectorAll('button, a, input');
      return control === undefined || Object.keys(control).some((name) => name.startsWith('__reactProps'));
    }),
  );
}

export function badgeOf(page: Page): Locator {
  return page.getByRole('status', { name: 'Connection' }).filter({ visible: true });
}

/** All rendered turns; in a window as tall as the session, that is every turn. */
export function shownTurns(page: Page): Promise<ShownTurn[]> {
  return transcriptOf(page)
    .locator('article')
    .evaluateAll((articles) =>
      articles.map((article) => ({
        name: article.getAttribute('aria-label') ?? '',
        // biome-ignore lint/performance/useDomNodeTextContent: visible text with line breaks
        text: (article as HTMLElement).innerText,
      })),
    );
}

/** A turn's distance from the transcript's upper edge in pixels; null if not rendered. */
export function turnTop(page: Page, turnId: string): Promise<number | null> {
  return transcriptOf(page).evaluate((log, id) => {
    const turn = log.querySelector(`[data-turn="${CSS.escape(id)}"]`);
    return turn === null ? null : turn.getBoundingClientRect().top - log.getBoundingClientRect().top;
  }, turnId);
}

/** The first turn that is at least partly visible. */
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

/** The transcript's words, separated by single spaces; ignores markdown and line breaks. */
export async function transcriptWords(page: Page): Promise<string> {
  const texts = await transcriptOf(page).allInnerTexts();
  return wordsIn(texts.join('\n')).join(' ');
}

export function wordsIn(text: string): string[] {
  return text.match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** Assistant texts in order. */
export function textsOf({ turns }: TranscriptPage): string[] {
  return turns.flatMap(({ items }) =>
    items.flatMap((item) => (item.kind === 'message' && item.role === 'assistant' ? [item.text] : [])),
  );
}

/** Resolves once the page shows that its connection is broken. */
export const reconnecting = (page: Page) => badgeOf(page).getByText('Reconnecting').waitFor();

/** Names of endless animations. */
function endlessAnimations(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    document
      .getAnimations()
      .filter((one) => one.playState === 'running' && one.effect?.getComputedTiming().iterations === Infinity)
      .map((one) => (one as CSSAnimation).animationName),
  );
}

/** Waits until these endless animations run. The agent shows life meanwhile, because its silence stops them. */
export async function expectMoving(
  page: Page,
  { agent, sessionId }: { agent: EventWriter; sessionId: string },
  ...names: string[]
): Promise<void> {
  const moving = async () => {
    await agent.showLife(sessionId);
    return endlessAnimations(page);
  };
  await expect.poll(moving, { interval: 500 }).toEqual(expect.arrayContaining(names));
}

/** Waits until no endless animation runs. */
export async function expectStill(page: Page): Promise<void> {
  await expect.poll(() => endlessAnimations(page)).toEqual([]);
}

/** The page's visible text without the connection badge. */
export function visibleText(page: Page): Promise<string> {
  return page.evaluate(() => {
    const badges = [...document.querySelectorAll<HTMLElement>('[role="status"][aria-label="Connection"]')];
    // biome-ignore lint/performance/useDomNodeTextContent: only visible text counts
    return badges.reduce((text, badge) => text.replace(badge.innerText, ''), document.body.innerText);
  });
}

/** Asserts that the page shows its age and that nothing else on it moves or counts. */
export async function expectFrozen(page: Page): Promise<void> {
  await expectStill(page);
  const age = badgeOf(page).getByText(/^\d+ s ago$/);
  // The first second shows "just now".
  await age.waitFor();
  expect(await badgeOf(page).textContent()).toMatch(/as of \d\d:\d\d:\d\d, \d+ s ago$/);
  const [before, since] = [await visibleText(page), await age.textContent()];
  await expect.poll(() => age.textContent()).not.toBe(since);
  expect(await visibleText(page)).toBe(before);
}

/** Sends a message and an interrupt during an outage, and expects the page to report that neither arrived. */
export async function expectUnsent(page: Page, text: string): Promise<void> {
  const field = page.getByRole('textbox', { name: /^Message to/ });
  await field.fill(text);
  await field.press('Enter');
  await transcriptOf(page).getByText('Not sent yet. Retrying…').waitFor();
  await page.getByRole('form', { name: 'Composer' }).getByText('Offline. Your messages will be sent').waitFor();
  await press(page.getByRole('button', { name: 'Interrupt', exact: true }));
  await page.getByText('The server can’t be reached').first().waitFor();
}
