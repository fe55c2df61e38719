import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { EventWriter } from './event-writer';
import { isFocused, transcriptOf } from './transcript-page';
import { message, userTurn } from './turn-events';

const HEBREW = 'שלום! הבדיקות עברו, אבל `npm run build` נכשל. ראו את **היומן**.';
const ARABIC = 'نجحت الاختبارات كلها (12 من 12)، لكن `deploy.sh` فشل!';
const COLUMNS = ['Service', 'Region', 'Owner', 'Status', 'Last deployment', 'Reason'];
const WIDE = [
  `| ${COLUMNS.join(' | ')} |`,
  `|${COLUMNS.map(() => '---').join('|')}|`,
  '| authentication-gateway | eu-central-1 | infrastructure | degraded | 2026-11-20 14:03 | Certificates expired while nobody was looking, and the renewal waits for approval |',
  '| `payments/ledger-reconciliation` | us-east-2 | finance | ok | 2026-11-21 09:15 | Nothing |',
].join('\n');
const NARROW = '| Check | Result |\n|---|--:|\n| lint | 0 |\n| unit | 3 |';
const RTL_TABLE = '| בדיקה | תוצאה |\n|---|---|\n| יחידה | עברה |';

/** Writes a session with tables and right-to-left messages. */
export async function writeTables(server: { url: string; token: string }, session: string): Promise<void> {
  const turn = userTurn('r1', `${HEBREW}\nand a line in English (with an end).\n${ARABIC}`, [
    ...message('a1', `${HEBREW}\n\n- ${ARABIC}\n- ${HEBREW}\n\n> ${ARABIC}\n\n${RTL_TABLE}`),
    ...message('a2', `Here is the state of **all** services:\n\n${WIDE}\n\nand of the checks:\n\n${NARROW}`),
  ]);
  await new EventWriter(server, session).write(session, turn);
}

/**
 * Expects a wide table to scroll by keys in its own box, to break no word, and to leave the page and a narrow table
 * unchanged.
 */
export async function expectTableScrolls(page: Page): Promise<void> {
  const table = transcriptOf(page).getByRole('region', { name: 'Table: Service, Region, Owner, Status' });
  await table.waitFor();
  await table.focus();
  expect(await isFocused(table)).toBe(true);
  await page.keyboard.press('ArrowRight');
  await expect.poll(() => table.evaluate((box) => box.scrollLeft)).toBeGreaterThan(0);
  await table.evaluate((box) => box.scrollTo(0, 0));
  // a broken word has several rectangles
  const broken = await table.evaluate((box) => {
    const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
    const found: string[] = [];
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      for (const { 0: word, index } of (node.nodeValue ?? '').matchAll(/\w{4,}/g)) {
        const range = document.createRange();
        range.setStart(node, index);
        range.setEnd(node, index + word.length);
        if (range.getClientRects().length > 1) found.push(word);
      }
    }
    return found;
  });
  expect(broken).toEqual([]);
  expect(await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)).toBe(false);
  const checks = transcriptOf(page).locator('table', { hasText: 'Check' });
  expect(await checks.locator('..').getAttribute('tabindex')).toBe(null);
}

/** A message with a long word, a long code line and a wide table. */
export const WIDE_MESSAGE = `A word of ${'length'.repeat(60)}, a path /${'folder/'.repeat(40)}file.ts, and

\`\`\`ts
const line = '${'code '.repeat(60)}';
\`\`\`

| ${Array.from({ length: 14 }, (_, at) => `column ${at}`).join(' | ')} |
|${' --- |'.repeat(14)}
| ${Array.from({ length: 14 }, (_, at) => `value-${at}-${'x'.repeat(20)}`).join(' | ')} |
`;

/** Returns boxes whose content overflows horizontally, except those designed to scroll. */
export function horizontalOverflows(page: Page): Promise<string[]> {
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
