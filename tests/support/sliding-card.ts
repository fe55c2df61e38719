import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import { allowOf, askingAgent, cardOf } from './asking-agent';
import { takesPresses } from './press';
import { transcriptOf } from './transcript-page';
import { message } from './turn-events';
import type { Visit } from './visit';
import { requestResolved } from './wire-runner';

/**
 * Clicks a button 120 ms after it has moved by more than 20 px, from within the page: no test driver is that quick.
 *
 * @param before its `topOf` before it moves
 * @returns how many pixels it moved up, and whether it is still on the page
 */
export function clickOnceMoved(button: Locator, before: number): Promise<{ up: number; isOffered: boolean }> {
  return button.evaluate(async (element, before) => {
    const top = () => element.getBoundingClientRect().top;
    while (Math.abs(top() - before) < 20) await new Promise(requestAnimationFrame);
    await new Promise((resolve) => setTimeout(resolve, 120));
    const up = before - top();
    (element as HTMLElement).click();
    for (let frames = 0; frames < 3; frames += 1) await new Promise(requestAnimationFrame);
    return { up, isOffered: element.isConnected };
  }, before);
}

/** Pixels from the top of the window to the top of the button. */
export function topOf(button: Locator): Promise<number> {
  return button.evaluate((element) => element.getBoundingClientRect().top);
}

/** Input that makes the reader scroll, given again and again. */
export const SCROLLS = {
  'the wheel': (page: Page) => page.mouse.wheel(0, 1),
  'an arrow key': (page: Page) => page.keyboard.press('ArrowDown'),
};

/** Asserts that a card that the page itself moves under the pointer takes no click, though the reader scrolls meanwhile. */
export async function expectNoClickOnSlidingCard(
  it: Visit,
  name: string,
  { scroll, isFollowed }: { scroll: (page: Page) => Promise<void>; isFollowed: boolean },
): Promise<void> {
  const { page, ask, agent, sessionId, runner, close } = await askingAgent(it, name);
  if (isFollowed) await agent.write(sessionId, message('long', 'One more line\n\n'.repeat(60)));
  await ask('a', { command: 'ls' });
  await ask('b', { command: 'rm -rf ~' });
  const [first, second] = ['Ask a', 'Ask b'].map((title) => allowOf(cardOf(page, title))) as [Locator, Locator];
  await takesPresses(first);
  await takesPresses(second);
  await transcriptOf(page).hover();
  let isOver = false;
  const scrolling = (async () => {
    while (!isOver) await scroll(page);
  })();
  const sliding = isFollowed ? first : second;
  const clicked = clickOnceMoved(sliding, await topOf(sliding));
  await agent.write(
    sessionId,
    isFollowed ? message('more', 'And one more\n\n'.repeat(5)) : [requestResolved('a', 'cancelled')],
  );
  const { up, isOffered } = await clicked;
  isOver = true;
  await scrolling;
  expect(up).toBeGreaterThan(20);
  expect(isOffered).toBe(true);
  await takesPresses(sliding);
  expect(runner.commands).toEqual([]);
  await close();
}

/** A card that was settled before the reader scrolls by 40 px. */
export async function settledCard(it: Visit, name: string) {
  const met = await askingAgent(it, name);
  const { page, ask, agent, sessionId } = met;
  await agent.write(sessionId, message('long', 'One more line\n\n'.repeat(60)));
  await ask('a', { command: 'ls' });
  await agent.write(sessionId, message('more', 'And one more\n\n'.repeat(4)));
  const allow = allowOf(cardOf(page, 'Ask a'));
  await allow.waitFor();
  await transcriptOf(page).hover();
  await transcriptOf(page).evaluate((box) => box.scrollTo(0, box.scrollHeight - box.clientHeight - 60));
  await takesPresses(allow);
  return { ...met, allow };
}
