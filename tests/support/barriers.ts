import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from 'playwright-core';

/**
 * What keeps somebody from using a page, as far as axe can tell: each rule that is broken, and by which elements. With
 * `contrast` only what depends on the theme is looked at, which is far quicker.
 */
export async function barriers(page: Page, what: 'all' | 'contrast' = 'all'): Promise<string[]> {
  const rules =
    what === 'contrast' ? { runOnly: { type: 'rule' as const, values: ['color-contrast', 'link-in-text-block'] } } : {};
  // a colour on its way to another has neither's contrast
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await page.evaluate(() => {
    const transitions = document.getAnimations().filter((animation) => animation instanceof CSSTransition);
    return Promise.allSettled(transitions.map(({ finished }) => finished)).then(() => undefined);
  });
  // "legacy" tests the page within itself; the other way needs one more page for each look, for frames we have not
  const axe = new AxeBuilder({ page }).setLegacyMode().options({ ...rules, resultTypes: ['violations'] });
  const { violations } = await axe.analyze();
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
}

/** The same in both themes. What does not depend on them is looked at once. */
export async function barriersInBothThemes(page: Page): Promise<string[]> {
  const found: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await page.locator(`html.${colorScheme}`).waitFor();
    const here = await barriers(page, colorScheme === 'light' ? 'all' : 'contrast');
    found.push(...here.map((barrier) => `${colorScheme}: ${barrier}`));
  }
  return found;
}
