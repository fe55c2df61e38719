import axe from 'axe-core';
import type { Frame, Page } from 'playwright-core';

/**
 * Runs axe. @returns each violated rule with its elements. `contrast` runs only the theme-dependent rules, which is
 * much faster. Frames inside are skipped.
 */
export async function accessibilityViolations(of: Page | Frame, what: 'all' | 'contrast' = 'all'): Promise<string[]> {
  const { page, frame } = placeOf(of);
  const rules =
    what === 'contrast' ? { runOnly: { type: 'rule' as const, values: ['color-contrast', 'link-in-text-block'] } } : {};
  // a colour in transition has an intermediate contrast
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await frame.evaluate(() => {
    const transitions = document.getAnimations().filter((animation) => animation instanceof CSSTransition);
    return Promise.allSettled(transitions.map(({ finished }) => finished)).then(() => undefined);
  });
  await frame.evaluate(axe.source);
  const { violations } = await frame.evaluate(
    (options) => (window as unknown as { axe: typeof axe }).axe.run(document, options),
    { ...rules, iframes: false, resultTypes: ['violations' as const] },
  );
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}

function placeOf(of: Page | Frame): { page: Page; frame: Frame } {
  return 'mainFrame' in of ? { page: of, frame: of.mainFrame() } : { page: of.page(), frame: of };
}

/** Checks both themes. Rules that don't depend on the theme run once. */
export async function violationsInBothThemes(of: Page | Frame): Promise<string[]> {
  const { page, frame } = placeOf(of);
  const found: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await frame.locator(`html.${colorScheme}`).waitFor();
    const here = await accessibilityViolations(frame, colorScheme === 'light' ? 'all' : 'contrast');
    found.push(...here.map((barrier) => `${colorScheme}: ${barrier}`));
  }
  return found;
}
