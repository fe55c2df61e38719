import type { Page } from 'playwright-core';
import { expect, onTestFinished, test } from 'vitest';
import { violationsInBothThemes } from '../support/accessibility';
import {
  distanceFromEnd,
  firstSeen,
  followSwitch,
  lineOf,
  logOf,
  scrollToShare,
  scrollUp,
  shownNumbers,
} from '../support/log-page';
import { LogWriter } from '../support/log-writer';
import { perFile, visit } from '../support/visit';

const site = perFile(visit);

test('paints lines taller than estimated in their final place in their first frame', async () => {
  const phone = new LogWriter(site.server, 'log-viewer-phone');
  await phone.numbered(100);
  const page = await site.context.newPage();
  onTestFinished(() => page.close());
  await page.setViewportSize({ width: 360, height: 800 });
  await page.goto(`${site.server.url}/agents/log-viewer-phone/logs`);
  await lineOf(page, 'line 100').waitFor();
  await expect.poll(() => distanceFromEnd(page)).toBeLessThanOrEqual(1);
  const rooms = await logOf(page).evaluateHandle((box) => {
    const seen = new Map<number, number>();
    const room = () => {
      const last = Array.from(box.querySelectorAll('[data-row]')).at(-1);
      return Math.round(box.getBoundingClientRect().bottom - (last?.getBoundingClientRect().bottom ?? 0));
    };
    // A layout unchanged at the end of its frame was painted.
    const watch = () =>
      requestAnimationFrame(() => {
        new ResizeObserver((_, layout) => {
          layout.disconnect();
          const laidOut = room();
          setTimeout(() => {
            if (room() === laidOut) seen.set(laidOut, (seen.get(laidOut) ?? 0) + 1);
            watch();
          });
        }).observe(document.documentElement);
      });
    watch();
    return seen;
  });
  for (let index = 0; index < 12; index += 1) {
    await phone.write([{ message: `wide ${index} ${'of many words '.repeat(20)}` }]);
    await lineOf(page, `wide ${index} `).waitFor();
  }
  const seen = await rooms.evaluate((seen) => [...seen]);
  expect(seen).toEqual([[8, expect.any(Number)]]);
  expect(seen[0]?.[1]).toBeGreaterThanOrEqual(12);
});

test('follows a flood, and stops following when a program scrolls up', async () => {
  const writer = new LogWriter(site.server, 'log-viewer-led');
  await writer.numbered(900);
  const page = await open('log-viewer-led');
  await lineOf(page, 'line 900').waitFor();
  await writer.numbered(24_000, 901);
  await lineOf(page, 'line 24900').waitFor();
  await expect.poll(() => distanceFromEnd(page)).toBeLessThanOrEqual(1);
  expect(await followSwitch(page).getAttribute('aria-checked')).toBe('true');

  await logOf(page).evaluate((log) => {
    log.scrollTop -= 800;
  });
  await expect.poll(() => followSwitch(page).getAttribute('aria-checked')).toBe('false');
  const read = await firstSeen(page);
  await writer.numbered(10, 24_901);
  await page.getByRole('button', { name: '10 new lines' }).waitFor();
  expect(await firstSeen(page)).toEqual(read);
});

test('reaches every part of 24,000 lines with few of them in the DOM', async () => {
  const writer = new LogWriter(site.server, 'log-viewer-flood');
  await writer.numbered(300);
  const page = await open('log-viewer-flood');
  await lineOf(page, 'line 300').waitFor();
  await scrollUp(page, 600);
  const read = await firstSeen(page);
  await writer.numbered(24_000, 301);
  await page.getByRole('button', { name: '24,000 new lines' }).waitFor();
  expect(await firstSeen(page)).toEqual(read);

  // The button counts new lines before the list has their height.
  await expect.poll(() => logOf(page).evaluate((log) => log.scrollHeight)).toBeGreaterThan(24_000 * 20);
  for (const share of [0.5, 0.1, 0.9]) {
    await scrollToShare(page, share);
    const middle = 24_300 * share;
    await expect.poll(async () => Math.abs(Number((await shownNumbers(page))[0]) - middle)).toBeLessThan(100);
    const shown = await shownNumbers(page);
    expect(shown).toEqual(shown.map((_, index) => (shown[0] as number) + index));
    const placed = await firstSeen(page);
    await logOf(page).hover();
    await page.mouse.wheel(0, -4_000);
    await page.mouse.wheel(0, 4_000);
    await expect.poll(() => firstSeen(page)).toEqual(placed);
  }
  await page.getByRole('button', { name: 'View' }).click();
  const copy = page.getByRole('button', { name: /^Copy [\d,]+ loaded lines$/ });
  expect(numberIn(await copy.textContent())).toBeLessThan(7_000);
  await page.keyboard.press('Escape');

  await page.keyboard.press('g');
  await lineOf(page, 'line 1').waitFor();
  await page.getByText('Beginning of the log').waitFor();
  await page.keyboard.press('G');
  await lineOf(page, 'line 24300').waitFor();
  await expect.poll(() => distanceFromEnd(page)).toBeLessThanOrEqual(1);
  await writer.numbered(1, 24_301);
  await lineOf(page, 'line 24301').waitFor();
});

test('offers a retry where lines in the middle failed to load, also in a busy browser', async () => {
  await new LogWriter(site.server, 'log-viewer-cut').numbered(3_000);
  const page = await site.load('/agents/log-viewer-cut/logs');
  onTestFinished(() => page.close());
  await lineOf(page, 'line 3000').waitFor();
  await page.route(/\/logs\?/, (route) => route.fulfill({ status: 503, json: { error: { message: 'Busy. Wait.' } } }));
  // A busy browser: the failure arrives before the next frame.
  await page.evaluate(() => {
    const soon = requestAnimationFrame;
    globalThis.requestAnimationFrame = (callback) => Number(setTimeout(() => soon(callback), 200));
  });
  await logOf(page).evaluate((log) => log.scrollTo({ top: 15_000 }));
  await page.getByRole('alert').getByText('Busy. Wait.').waitFor();
  site.complaints.splice(0, Number.POSITIVE_INFINITY, ...site.complaints.filter((text) => !/status of 503/.test(text)));
  await page.unroute(/\/logs\?/);
  await page.getByRole('alert').getByRole('button', { name: 'Try again' }).click();
  await lineOf(page, 'line 760').waitFor();
  await page.getByRole('alert').getByText('Busy. Wait.').waitFor({ state: 'hidden' });
});

test.each([360, 1280])('has no axe violations and does not scroll sideways at %i px', async (width) => {
  await new LogWriter(site.server, `log-viewer-axe-${width}`).write([
    ...Array.from(
      { length: 60 },
      (_, index) => ({ message: `step ${index}`, level: index % 2 ? 'debug' : 'warn' }) as const,
    ),
    { message: 'exit status 2: no such file', level: 'fatal', component: 'hook:stop' },
    { message: 'a third needle {"found":{"in":["a","haystack"]}}', level: 'error' },
    { message: `token ‹redacted› ${'and a word '.repeat(80)}`, redacted: 2 },
  ]);
  const page = await open(`log-viewer-axe-${width}`, '?q=e');
  await page.setViewportSize({ width, height: 740 });
  await logOf(page).locator('mark').first().waitFor();
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
  expect(await logOf(page).evaluate((log) => log.scrollWidth - log.clientWidth)).toBe(0);
  expect(await logOf(page).evaluate((log) => log.clientHeight)).toBeGreaterThan(width < 640 ? 400 : 500);
  expect(await violationsInBothThemes(page)).toEqual([]);
});

async function open(agentId: string, rest = ''): Promise<Page> {
  const page = await site.open(`/agents/${agentId}/logs${rest}`);
  onTestFinished(() => site.leave(page));
  return page;
}

function numberIn(text: string | null): number {
  return Number(/[\d,]+/.exec(text ?? '')?.[0].replaceAll(',', ''));
}
