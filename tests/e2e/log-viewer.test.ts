import type { LogPage } from '@interlude/protocol/read-models';
import type { Page } from 'playwright-core';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
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
import { LogWriter, type WrittenLine } from '../support/log-writer';
import { isFocused } from '../support/transcript-page';
import { perFile, visit } from '../support/visit';

const site = perFile(visit);

/** 1,500 lines, one per second. Tests look for the special ones. */
const STORY: WrittenLine[] = Array.from({ length: 1_500 }, (_, index) => ({
  message: `step ${index} of the story`,
  component: index % 10 === 0 ? 'outbox' : 'mirror',
  level: index % 10 === 0 ? 'debug' : 'info',
  occurredAt: Date.now() - (1_500 - index) * 1_000,
}));
const SPECIAL: Record<number, WrittenLine> = {
  40: { message: 'needle number one', level: 'warn', component: 'mirror' },
  900: { message: 'the Needle, the second', level: 'error', component: 'outbox' },
  1480: { message: 'a third needle {"found":{"in":["a","haystack"]},"exact":12345678901234567890}' },
  1485: { message: 'exit status 2: no such file', level: 'fatal', component: 'hook:stop' },
  1491: {
    message: 'level info',
    level: 'warn',
    component: 'log',
    marker: { kind: 'level', level: 'debug', previous: 'info', by: 'ada' },
  },
  1492: { message: 'Error: it broke\n    at one (a.ts:1:1)\n    at two (b.ts:2:2)', level: 'error' },
  1493: { message: `token ‹redacted› ${'and a word '.repeat(80)}`, redacted: 2 },
};
const STORYTELLER = 'log-viewer-story';

beforeAll(async () => {
  await new LogWriter(site.server, STORYTELLER).write(STORY.map((line, index) => ({ ...line, ...SPECIAL[index] })));
});

test('follows its end, and stays in place and counts new lines while the reader is further up', async () => {
  const busy = new LogWriter(site.server, 'log-viewer-busy');
  await busy.numbered(300);
  const page = await open('log-viewer-busy');
  await lineOf(page, 'line 300').waitFor();
  await busy.numbered(50, 301);
  await lineOf(page, 'line 350').waitFor();
  await expect.poll(() => distanceFromEnd(page)).toBeLessThanOrEqual(1);

  await scrollUp(page, 400);
  await page.getByRole('button', { name: 'Jump to the end' }).waitFor();
  const read = await firstSeen(page);
  await busy.numbered(30, 351);
  await page.getByRole('button', { name: '30 new lines' }).waitFor();
  await busy.numbered(10, 381);
  await page.getByRole('button', { name: '40 new lines' }).waitFor();
  expect(await firstSeen(page)).toEqual(read);

  await page.getByRole('button', { name: '40 new lines' }).click();
  await lineOf(page, 'line 390').waitFor();
  expect(await followSwitch(page).getAttribute('aria-checked')).toBe('true');
  await followSwitch(page).click();
  await busy.numbered(5, 391);
  await page.getByRole('button', { name: '5 new lines' }).waitFor();
  await page.keyboard.press('f');
  await lineOf(page, 'line 395').waitFor();
});

test('loads the part that is scrolled to, and keeps the reader’s line in its place', async () => {
  const writer = new LogWriter(site.server, 'log-viewer-long');
  await writer.numbered(300);
  const page = await open('log-viewer-long');
  await lineOf(page, 'line 300').waitFor();
  await scrollUp(page, 600);
  const read = await firstSeen(page);
  await writer.numbered(4_000, 301);
  await page.getByRole('button', { name: '4,000 new lines' }).waitFor();
  expect(await firstSeen(page)).toEqual(read);
  await page.keyboard.press('G');
  await lineOf(page, 'line 4300').waitFor();

  await scrollToShare(page, 0.4);
  await expect.poll(async () => Math.abs(Number((await shownNumbers(page))[0]) - 1_720)).toBeLessThan(100);
  const shown = await shownNumbers(page);
  expect(shown).toEqual(shown.map((_, index) => (shown[0] as number) + index));
  const placed = await firstSeen(page);
  await logOf(page).hover();
  await page.mouse.wheel(0, -4_000);
  await page.mouse.wheel(0, 4_000);
  await expect.poll(() => firstSeen(page)).toEqual(placed);

  await page.keyboard.press('g');
  await lineOf(page, 'line 1').waitFor();
  await page.getByText('Beginning of the log').waitFor();
  await page.keyboard.press('G');
  await lineOf(page, 'line 4300').waitFor();
  await expect.poll(() => distanceFromEnd(page)).toBeLessThanOrEqual(1);
});

test('marks search hits, and moves between them among the hits or among all lines', async () => {
  const page = await open(STORYTELLER);
  await lineOf(page, 'step 1499 of the story').waitFor();
  await page.keyboard.press('/');
  const field = page.getByRole('searchbox', { name: 'Search log' });
  expect(await isFocused(field)).toBe(true);
  await page.keyboard.type('NEEDLE');
  await page.getByText('3 hits', { exact: true }).waitFor();
  expect(await lines(page)).toHaveLength(3);
  expect(await logOf(page).locator('mark').allInnerTexts()).toEqual(['needle', 'Needle', 'needle']);
  expect(new URL(page.url()).searchParams.get('q')).toBe('NEEDLE');
  await page.keyboard.press('Enter');
  await page.getByText('3 of 3', { exact: true }).waitFor();
  await logOf(page).focus();
  await page.keyboard.press('N');
  await page.getByText('2 of 3', { exact: true }).waitFor();
  await page.keyboard.press('N');
  await page.getByText('1 of 3', { exact: true }).waitFor();
  await page.keyboard.press('n');
  await page.getByText('2 of 3', { exact: true }).waitFor();

  // The other lines return dimmed, and the hit stays in view among them.
  await page.getByRole('button', { name: 'Show other lines dimmed' }).click();
  await lineOf(page, 'step 901 of the story').waitFor();
  await lineOf(page, 'the Needle, the second').waitFor();
  await page.getByText('2 of 3', { exact: true }).waitFor();
  await page.keyboard.press('N');
  await lineOf(page, 'needle number one').waitFor();
  await lineOf(page, 'step 41 of the story').waitFor();
  await page.getByText('1 of 3', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Show other lines dimmed' }).click();
  await page.getByText('1 of 3', { exact: true }).waitFor();
});

test('shows a hit among its neighbours, and the hits again on Back', async () => {
  const page = await open(STORYTELLER, '?q=needle&level=warn');
  await expect.poll(() => page.getByRole('search').textContent()).toContain('2 hits');
  const found = lineOf(page, 'needle number one');
  await found.hover();
  await found.getByRole('button', { name: 'Show in context' }).click();
  await lineOf(page, 'step 39 of the story').waitFor();
  await lineOf(page, 'step 41 of the story').waitFor();
  const position = await found.getAttribute('data-line');
  expect(page.url()).toMatch(new RegExp(`/logs#${position}$`));
  expect(await followSwitch(page).getAttribute('aria-checked')).toBe('false');
  await page.goBack();
  await page.getByText('1 of 2', { exact: true }).waitFor();
  expect(await lines(page)).toHaveLength(2);
});

test('loads and shows a distant line that the address names', async () => {
  const { lines: first } = await site.read<LogPage>(`/agents/${STORYTELLER}/logs?after=0&limit=500`);
  const page = await site.load(`/agents/${STORYTELLER}/logs#${first[420]?.position}`);
  // A later link to the same log would move to that line again.
  onTestFinished(() => page.close());
  await lineOf(page, 'step 420 of the story').waitFor();
  await lineOf(page, 'step 421 of the story').waitFor();
  await page.keyboard.press('G');
  await lineOf(page, 'step 1499 of the story').waitFor();
  await page.keyboard.press('g');
  await lineOf(page, 'step 0 of the story').waitFor();
  await page.getByText('Beginning of the log').waitFor();
});

test('sets the level, wraps, walks and unfolds by keys, except in a focused field', async () => {
  const page = await open(STORYTELLER);
  await lineOf(page, 'step 1499 of the story').waitFor();
  const level = (name: string) => page.getByRole('radiogroup', { name: 'Show level' }).getByRole('radio', { name });
  await page.keyboard.press('4');
  await expect.poll(() => level('error').getAttribute('aria-checked')).toBe('true');
  await expect.poll(async () => (await lines(page)).length).toBe(4);
  await lineOf(page, 'level info → debug, by ada').waitFor();
  await lineOf(page, 'Hook stop failed: exit status 2: no such file').waitFor();
  expect(new URL(page.url()).searchParams.get('level')).toBe('error');
  await level('error').focus();
  await page.keyboard.press('ArrowRight');
  await expect.poll(() => level('fatal').getAttribute('aria-checked')).toBe('true');
  await page.keyboard.press('ArrowLeft');
  await expect.poll(() => level('error').getAttribute('aria-checked')).toBe('true');
  await logOf(page).focus();
  await page.keyboard.press('1');
  await lineOf(page, 'step 1499 of the story').waitFor();
  expect(new URL(page.url()).search).toBe('');

  const long = lineOf(page, /token ‹redacted›/);
  const height = () => long.evaluate((row) => row.getBoundingClientRect().height);
  expect(await height()).toBe(20);
  await long.getByText('2 secrets removed').waitFor();
  await page.keyboard.press('w');
  await expect.poll(height).toBeGreaterThan(40);
  await page.keyboard.press('w');
  await expect.poll(height).toBe(20);

  await page.keyboard.press('j');
  const cursor = () => page.evaluate(() => (document.activeElement as HTMLElement | null)?.dataset.line ?? '');
  await expect.poll(cursor).not.toBe('');
  expect(await focusedText(page)).toContain('step 1499 of the story');
  for (let step = 0; step < 40 && !/a third needle/.test(await focusedText(page)); step += 1) {
    await page.keyboard.press('k');
    await nextFrames(page);
  }
  await page.keyboard.press('Enter');
  await logOf(page).getByText('"exact": 12345678901234567890').waitFor();
  await page.keyboard.press('Enter');
  await logOf(page).getByText('"exact": 12345678901234567890').waitFor({ state: 'hidden' });

  for (const error of ['the Needle, the second', 'Error: it broke', 'Hook stop failed: exit status 2']) {
    await page.keyboard.press('e');
    await expect.poll(() => focusedText(page)).toContain(error);
  }

  await page.keyboard.press('/');
  await page.keyboard.type('wGg4');
  expect(await page.getByRole('searchbox', { name: 'Search log' }).inputValue()).toBe('wGg4');
  await page.getByText('No lines match.').waitFor();
});

test('Escape moves from the search to its hits, then to the whole log, then up to the agent’s row', async () => {
  const page = await open(STORYTELLER);
  await lineOf(page, 'step 1499 of the story').waitFor();
  const field = page.getByRole('searchbox', { name: 'Search log' });
  await page.keyboard.press('/');
  await page.keyboard.type('needle');
  // Before the search starts.
  await page.keyboard.press('Escape');
  expect(await field.inputValue()).toBe('needle');
  const hits = page.getByRole('search').getByRole('status');
  await expect.poll(() => hits.textContent()).toMatch(/hits$/);
  await expect.poll(() => logOf(page).evaluate((log) => log.contains(document.activeElement))).toBe(true);
  await page.keyboard.press('N');
  await expect.poll(() => hits.textContent()).toMatch(/^\d+ of \d+$/);
  await page.keyboard.press('Escape');
  await expect.poll(() => field.inputValue()).toBe('');
  await hits.waitFor({ state: 'detached' });
  expect(new URL(page.url()).pathname).toBe(`/agents/${STORYTELLER}/logs`);
  await page.keyboard.press('Escape');
  await page.waitForURL(`${site.server.url}/agents/${STORYTELLER}`);
  await page.getByRole('heading', { name: STORYTELLER }).waitFor();
  await page.keyboard.press('Escape');
  await page.waitForURL(`${site.server.url}/agents`);
  await expect.poll(() => isFocused(page.locator(`[data-agent-row="${STORYTELLER}"]`))).toBe(true);
});

test.each([360, 768, 1280])('keeps search, view and follow in reach at %i px while it searches', async (width) => {
  const page = await open(STORYTELLER, '?q=needle');
  await page.setViewportSize({ width, height: 780 });
  await page.getByText('3 hits', { exact: true }).waitFor();
  const boxOf = async (name: string) => {
    const one = page.getByRole('toolbar', { name: 'Log' }).getByLabel(name, { exact: true });
    return (await one.or(page.getByRole('switch', { name })).boundingBox()) ?? { x: -1, y: -1, width: 0, height: 0 };
  };
  const field = await boxOf('Search log');
  expect(field.width).toBeGreaterThan(width < 640 ? 90 : 160);
  for (const name of ['Next hit', 'View', 'Follow']) {
    const box = await boxOf(name);
    expect(box.x, name).toBeGreaterThan(0);
    expect(box.x + box.width, name).toBeLessThanOrEqual(width);
    const isBeside = box.x >= field.x + field.width || box.x + box.width <= field.x;
    expect(isBeside || box.y >= field.y + field.height || box.y + box.height <= field.y, name).toBe(true);
  }
});

/** Comes from another page, because a link to the current log keeps its state. */
async function open(agentId: string, rest = ''): Promise<Page> {
  await site.leave(await site.open('/agents'));
  const page = await site.open(`/agents/${agentId}/logs${rest}`);
  onTestFinished(() => site.leave(page));
  return page;
}

function lines(page: Page): Promise<string[]> {
  return logOf(page).locator('[data-line]').allInnerTexts();
}

function focusedText(page: Page): Promise<string> {
  return page.evaluate(() => document.activeElement?.textContent ?? '');
}

function nextFrames(page: Page): Promise<void> {
  return page.evaluate(
    () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve()))),
  );
}
