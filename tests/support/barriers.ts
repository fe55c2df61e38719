import axe from 'axe-core';
import type { Frame, Page } from 'playwright-core';

/**
 * What keeps somebody from using a page, as far as axe can tell: each rule that is broken, and by which elements. With
 * `contrast` only what depends on the theme is looked at, which is far quicker. Frames in it are not looked into.
 */
export async function barriers(of: Page | Frame, what: 'all' | 'contrast' = 'all'): Promise<string[]> {
  const { page, frame } = placeOf(of);
  const rules =
    what === 'contrast' ? { runOnly: { type: 'rule' as const, values: ['color-contrast', 'link-in-text-block'] } } : {};
  // a colour on its way to another has neither's contrast
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

/** The same in both themes. What does not depend on them is looked at once. */
export async function barriersInBothThemes(of: Page | Frame): Promise<string[]> {
  const { page, frame } = placeOf(of);
  const found: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await frame.locator(`html.${colorScheme}`).waitFor();
    const here = await barriers(frame, colorScheme === 'light' ? 'all' : 'contrast');
    found.push(...here.map((barrier) => `${colorScheme}: ${barrier}`));
  }
  return found;
}
