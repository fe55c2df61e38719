import type { Locator } from 'playwright-core';
import { expect } from 'vitest';

/** The page checks ten times a second for moved controls, so a move may not be detected yet. */
const LOOKED_MS = 150;

/** Resolves once the control accepts presses, which requires it to stay in place for a moment. */
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
 * Presses like a person: waits until the control accepts presses, then takes a tenth of a second. A bare `click`
 * retries and scrolls each time, which moves the control. Scrolls an off-screen control into view first, because the
 * page counts programmatic scrolling as a move.
 */
export async function press(button: Locator): Promise<void> {
  await button.scrollIntoViewIfNeeded();
  await untilPressable(button);
  await button.click({ delay: 100 });
}

/** For a control that has just moved: presses until the result appears. */
export async function pressUntil(button: Locator, done: Locator): Promise<void> {
  await expect
    .poll(async () => {
      if (await done.isVisible()) return true;
      await press(button);
      return done.isVisible();
    })
    .toBe(true);
}
