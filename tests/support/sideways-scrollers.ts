import type { Page } from 'playwright-core';

/** Returns the boxes that are wider inside than outside, except those that are made to scroll sideways only. */
export function sidewaysScrollers(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const root = document.documentElement;
    const page = root.scrollWidth > root.clientWidth ? [`the page: ${root.scrollWidth} in ${root.clientWidth}`] : [];
    const boxes = [...document.querySelectorAll<HTMLElement>('[role=log], nav, nav *, main, main > *, aside, header')];
    const wide = boxes.filter((box) => {
      const { overflowX, overflowY, textOverflow } = getComputedStyle(box);
      const scrolls = /auto|scroll/.test(overflowX) && /auto|scroll/.test(overflowY);
      return scrolls && textOverflow !== 'ellipsis' && box.scrollWidth > box.clientWidth;
    });
    return [...page, ...wide.map((box) => `${box.tagName} ${box.className}: ${box.scrollWidth} in ${box.clientWidth}`)];
  });
}
