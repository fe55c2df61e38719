import type { Locator } from 'playwright-core';
import { expect } from 'vitest';

/** The page looks ten times a second whether a control has moved: what moved since is not told yet. */
const LOOKED_MS = 150;

/** A control that acts takes no press until it has stood still for a moment. */
export async function untilPressable(button: Locator): Promise<void> {
  let enabledAt: number | null = null;
  await expect
    .poll(async () => {
      const isEnabled = await button.isEnabled().catch(() => false);
      if (!isEnabled) enabledAt = null;
      else enabledAt ??= performance.now();
      return enabledAt !== null && performance.now() - enabledAt >= LOOKED_MS;
    })
    .toBe(true);
}

/**
 * Presses it as a person does, who waits until it can be pressed, and takes a tenth of a second for it. A bare `click`
 * tries again and again meanwhile, and scrolls each time, which moves what has to stand still. What is out of
 * sight is scrolled to before it is waited for: the page sees no person scroll there, and counts it as moved.
 */
export async function press(button: Locator): Promise<void> {
  await button.scrollIntoViewIfNeeded();
  await untilPressable(button);
  await button.click({ delay: 100 });
}

/** For one that has only just moved, which may not be told yet: presses it until what it does is there. */
export async function pressUntil(button: Locator, done: Locator): Promise<void> {
  await expect
    .poll(async () => {
      if (await done.isVisible()) return true;
      await press(button);
      return done.isVisible();
    })
    .toBe(true);
}
