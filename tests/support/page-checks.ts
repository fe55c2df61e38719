import type { ElementHandle, Page } from 'playwright-core';
import { expect } from 'vitest';
import { EventWriter } from './event-writer';
import { isFocused, transcriptOf } from './transcript-page';
import { message, taskStarted, toolCall, userTurn, wokenTurn } from './turn-events';

const HEBREW = 'שלום! הבדיקות עברו, אבל `npm run build` נכשל. ראו את **היומן**.';
const ARABIC = 'نجحت الاختبارات كلها (12 من 12)، لكن `deploy.sh` فشل!';
const COLUMNS = ['Service', 'Region', 'Owner', 'Status', 'Last deployment', 'Repository', 'Reason'];
const WIDE = [
  `| ${COLUMNS.join(' | ')} |`,
  `|${COLUMNS.map(() => '---').join('|')}|`,
  '| authentication-gateway | eu-central-1 | infrastructure | degraded | 2026-11-20 14:03 | platform_authentication_gateway | Certificates expired while nobody was looking, and the renewal waits for approval |',
  '| `payments/ledger-reconciliation` | us-east-2 | finance | ok | 2026-11-21 09:15 | ledger_reconciliation | Nothing |',
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
  const table = transcriptOf(page).getByRole('group', { name: 'Table: Service, Region, Owner, Status' });
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

| ${Array.from({ length: 14 }, (_, index) => `column ${index}`).join(' | ')} |
|${' --- |'.repeat(14)}
| ${Array.from({ length: 14 }, (_, index) => `value-${index}-${'x'.repeat(20)}`).join(' | ')} |
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

/** Minimum contrast of a non-text icon (WCAG 1.4.11). */
const LEAST_CONTRAST = 3;

const CONTROLS = 'button:visible, [role=switch]:visible, [role=radio]:visible';

/** Writes a session with every kind of control: a call, a task, code and a failed hook. */
export async function writeControls(server: { url: string; token: string }, session: string): Promise<void> {
  const agent = new EventWriter(server, session);
  await agent.write(session, [
    ...userTurn('r1', 'Build it', [
      ...toolCall('c1', 'Bash', { command: 'make' }, 'done'),
      taskStarted('t1', 'Nightly'),
    ]),
    ...wokenTurn('r2', 't1', 'It has ended.\n\n```sh\nmake check\n```'),
  ]);
  await agent.failHook('Stop', 'exit 3: needle', session);
}

/** Hovers each enabled control. Expects its icon and contrast to stay, and the background of a pressed one. */
export async function expectHoveredIcons(page: Page, colorScheme: 'light' | 'dark'): Promise<void> {
  await page.mouse.move(0, 0);
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
  await page.locator(`html.${colorScheme}`).waitFor();
  let seen = 0;
  const controls = (await page.locator(CONTROLS).elementHandles()) as ElementHandle<Element>[];
  for (const control of controls) {
    // lists may change meanwhile; skip removed controls
    if (!(await control.evaluate((element) => element.isConnected && element.checkVisibility()))) continue;
    const before = await iconOf(control);
    if (!before.isEnabled) continue;
    await control.hover({ force: true });
    const hovered = await iconOf(control);
    const which = `${hovered.name}, ${colorScheme}`;
    expect(hovered.shape, which).toBe(before.shape);
    expect(hovered.contrast, which).toBeGreaterThanOrEqual(LEAST_CONTRAST);
    if (hovered.isOn) expect(hovered.ground, which).not.toBe('');
    seen += 1;
  }
  expect(seen).toBeGreaterThan(1);
}

/** A control's icon and its contrast with the background. */
function iconOf(control: ElementHandle<Element>) {
  return control.evaluate((control) => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const rgb = (colour: string) => {
      if (canvas === null) throw new Error('no canvas');
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      return canvas.getImageData(0, 0, 1, 1).data;
    };
    const luminance = (colour: string) => {
      const [r = 0, g = 0, b = 0] = Array.from(rgb(colour).slice(0, 3), (part) => {
        const share = part / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    let behind: Element | null = control;
    while (behind !== null && rgb(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
    const ground = getComputedStyle(behind ?? document.body).backgroundColor;
    const icon = control.querySelector('svg') ?? control;
    const [a, b] = [luminance(getComputedStyle(icon).color), luminance(ground)];
    return {
      name: control.getAttribute('aria-label') ?? control.textContent ?? '',
      isEnabled: !control.matches(':disabled, [aria-disabled=true]'),
      isOn: control.getAttribute('aria-pressed') === 'true',
      shape: [...control.querySelectorAll('svg')].map((svg) => svg.innerHTML).join(),
      ground: behind === control ? ground : '',
      contrast: (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05),
    };
  });
}

/**
 * Returns visible controls whose target is smaller than 44 px. The target includes the label of a field, and what
 * `::before` and `::after` add. Links beside other text are exempt.
 */
export function smallTargets(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const LEAST_PX = 44;
    const CONTROLS = 'a[href], button, summary, select, textarea, input, [role=switch], [role=radio], [role=tab]';
    const sizeOf = (element: Element) => {
      const { width, height } = element.getBoundingClientRect();
      const added = ['::before', '::after']
        .map((pseudo) => getComputedStyle(element, pseudo))
        .filter(({ content, position }) => content !== 'none' && position === 'absolute');
      return {
        width: Math.max(width, ...added.map((style) => Number.parseFloat(style.width))),
        height: Math.max(height, ...added.map((style) => Number.parseFloat(style.height))),
      };
    };
    return [...document.querySelectorAll<HTMLElement>(CONTROLS)].flatMap((control) => {
      if (!control.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return [];
      if (control.closest('.sr-only') === control && control.closest('label') === null) return [];
      const text = control.textContent?.trim();
      if (control.matches('a') && text !== control.parentElement?.textContent?.trim() && !control.closest('nav')) {
        return [];
      }
      const { width, height } = sizeOf(control.closest('label') ?? control);
      if (width === 0 || (width >= LEAST_PX - 0.5 && height >= LEAST_PX - 0.5)) return [];
      return [`${control.ariaLabel ?? text ?? control.tagName}: ${Math.round(width)} × ${Math.round(height)}`];
    });
  });
}
