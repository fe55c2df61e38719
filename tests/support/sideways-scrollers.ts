import type { Page } from 'playwright-core';

/** A message of a long word, a long line of code and a wide table. */
export const WIDE = `A word of ${'length'.repeat(60)}, a path /${'folder/'.repeat(40)}file.ts, and

\`\`\`ts
const line = '${'code '.repeat(60)}';
\`\`\`

| ${Array.from({ length: 14 }, (_, at) => `column ${at}`).join(' | ')} |
|${' --- |'.repeat(14)}
| ${Array.from({ length: 14 }, (_, at) => `value-${at}-${'x'.repeat(20)}`).join(' | ')} |
`;

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
