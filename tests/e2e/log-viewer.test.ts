import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { LogPage } from '@/lib/protocol/read-models';
import { barriersInBothThemes } from '../support/barriers';
import { LogWriter, type WrittenLine } from '../support/log-writer';
import { isFocused, live } from '../support/transcript-page';
import { type OwnVisit, visitOwn } from '../support/visit';

let it: OwnVisit;
let busy: LogWriter;
const now = Date.now();

/** 1,500 lines, a second apart; what a reader may look for is among them. */
const STORY: WrittenLine[] = Array.from({ length: 1_500 }, (_, at) => ({
  message: `step ${at} of the story`,
  component: at % 10 === 0 ? 'outbox' : 'mirror',
  level: at % 10 === 0 ? 'debug' : 'info',
  occurredAt: now - (1_500 - at) * 1_000,
}));
const SPECIAL: Record<number, WrittenLine> = {
  40: { message: 'needle number one', level: 'warn', component: 'mirror' },
  900: { message: 'the Needle, the second', level: 'error', component: 'outbox' },
  1480: { message: 'a third needle {"found":{"in":["a","haystack"]},"exact":12345678901234567890}' },
  1485: { message: 'exit status 2: no such file', level: 'fatal', component: 'hook:stop' },
  1490: { message: '\u001b[31mred\u001b[0m and \u001b[2J\u0000 \u202eturned, <img src=x onerror=alert(1)>' },
  1491: {
    message: 'level info',
    level: 'warn',
    component: 'log',
    marker: { kind: 'level', level: 'debug', previous: 'info', by: 'ada' },
  },
  1492: { message: 'Error: it broke\n    at one (a.ts:1:1)\n    at two (b.ts:2:2)', level: 'error' },
  1493: { message: `token ‹redacted› ${'and a word '.repeat(80)}`, redacted: 2 },
};

beforeAll(async () => {
  it = await visitOwn();
  await new LogWriter(it.server, 'storyteller').write(STORY.map((line, at) => ({ ...line, ...SPECIAL[at] })));
  busy = new LogWriter(it.server, 'busy');
  await busy.numbered(300);
});
afterAll(async () => {
  await it.close();
  expect(it.complaints).toEqual([]);
});

test('the log follows its end, and stops for a reader who scrolls up: nothing moves, and what comes is counted', async () => {
  const page = await open('busy');
  await line(page, 'line 300').waitFor();
  await busy.numbered(50, 301);
  await line(page, 'line 350').waitFor();
  await expect.poll(() => distanceFromEnd(page)).toBeLessThanOrEqual(1);

  await logOf(page).hover();
  await page.mouse.wheel(0, -400);
  await expect.poll(() => followSwitch(page).getAttribute('aria-checked')).toBe('false');
  await page.getByRole('button', { name: 'Jump to the end' }).waitFor();
  const read = await firstSeen(page);
  await busy.numbered(30, 351);
  await page.getByRole('button', { name: '30 new lines' }).waitFor();
  await busy.numbered(10, 381);
  await page.getByRole('button', { name: '40 new lines' }).waitFor();
  expect(await firstSeen(page)).toEqual(read);

  await page.getByRole('button', { name: '40 new lines' }).click();
  await line(page, 'line 390').waitFor();
  expect(await followSwitch(page).getAttribute('aria-checked')).toBe('true');
  await followSwitch(page).click();
  await busy.numbered(5, 391);
  await page.getByRole('button', { name: '5 new lines' }).waitFor();
  await page.keyboard.press('f');
  await line(page, 'line 395').waitFor();
});

test('lines that prove higher than others come to stand where they stay, in the very first frame', async () => {
  const phone = new LogWriter(it.server, 'phone');
  await phone.numbered(100);
  const page = await open('phone');
  await page.setViewportSize({ width: 360, height: 800 });
  await page.reload();
  await line(page, 'line 100').waitFor();
  await expect.poll(() => distanceFromEnd(page)).toBeLessThanOrEqual(1);
  const rooms = await logOf(page).evaluateHandle((box) => {
    const seen = new Map<number, number>();
    const room = () => {
      const last = Array.from(box.querySelectorAll('[data-row]')).at(-1);
      return Math.round(box.getBoundingClientRect().bottom - (last?.getBoundingClientRect().bottom ?? 0));
    };
    // what stands there once the frame is laid out, and still does when it is over, was painted
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
  for (let at = 0; at < 12; at += 1) {
    await phone.write([{ message: `wide ${at} ${'of many words '.repeat(20)}` }]);
    await line(page, `wide ${at} `).waitFor();
  }
  const seen = await rooms.evaluate((seen) => [...seen]);
  expect(seen).toEqual([[8, expect.any(Number)]]);
  expect(seen[0]?.[1]).toBeGreaterThanOrEqual(12);
});

test('who is led up by something else than their hand stays there too, and a flood leads nobody away', async () => {
  const writer = new LogWriter(it.server, 'led');
  await writer.numbered(900);
  const page = await open('led');
  await line(page, 'line 900').waitFor();
  await writer.numbered(24_000, 901);
  await line(page, 'line 24900').waitFor();
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

test('what a page does not hold is loaded where the reader comes to it, and what they read stays where it is', async () => {
  const writer = new LogWriter(it.server, 'flood');
  await writer.numbered(300);
  const page = await open('flood');
  await line(page, 'line 300').waitFor();
  await logOf(page).hover();
  await page.mouse.wheel(0, -600);
  const read = await firstSeen(page);
  await writer.numbered(24_000, 301);
  await page.getByRole('button', { name: '24,000 new lines' }).waitFor();
  expect(await firstSeen(page)).toEqual(read);

  // the bar spans all of it, and leads anywhere
  const goTo = (share: number) =>
    logOf(page).evaluate((log, share) => log.scrollTo({ top: (log.scrollHeight - log.clientHeight) * share }), share);
  for (const share of [0.5, 0.1, 0.9]) {
    await goTo(share);
    const middle = 24_300 * share;
    await expect.poll(async () => Math.abs(Number((await shownNumbers(page))[0]) - middle)).toBeLessThan(100);
    const shown = await shownNumbers(page);
    expect(shown).toEqual(shown.map((_, at) => (shown[0] as number) + at));
    const placed = await firstSeen(page);
    await logOf(page).hover();
    await page.mouse.wheel(0, -4_000);
    await page.mouse.wheel(0, 4_000);
    await expect.poll(() => firstSeen(page)).toEqual(placed);
  }
  await page.getByRole('button', { name: 'View' }).click();
  const copy = page.getByRole('button', { name: /^Copy the [\d,]+ lines loaded$/ });
  expect(numberIn(await copy.textContent())).toBeLessThan(7_000);
  await page.keyboard.press('Escape');

  await page.keyboard.press('g');
  await line(page, 'line 1').waitFor();
  await page.getByText('Beginning of the log').waitFor();
  await page.keyboard.press('G');
  await line(page, 'line 24300').waitFor();
  await expect.poll(() => distanceFromEnd(page)).toBeLessThanOrEqual(1);
  await writer.numbered(1, 24_301);
  await line(page, 'line 24301').waitFor();
});

test('lines that could not be loaded are said to be, and asked for again', async () => {
  const writer = new LogWriter(it.server, 'cut-off');
  await writer.numbered(3_000);
  const page = await open('cut-off');
  await line(page, 'line 3000').waitFor();
  await page.route(/\/logs\?/, (route) => route.fulfill({ status: 503, json: { error: { message: 'Busy. Wait.' } } }));
  // a busy browser: the failure comes before the next frame does
  await page.evaluate(() => {
    const soon = requestAnimationFrame;
    globalThis.requestAnimationFrame = (callback) => Number(setTimeout(() => soon(callback), 200));
  });
  await logOf(page).evaluate((log) => log.scrollTo({ top: 15_000 }));
  await page.getByRole('alert').getByText('Busy. Wait.').waitFor();
  it.complaints.splice(0, Number.POSITIVE_INFINITY, ...it.complaints.filter((text) => !/status of 503/.test(text)));
  await page.unroute(/\/logs\?/);
  await page.getByRole('alert').getByRole('button', { name: 'Try again' }).click();
  await line(page, 'line 760').waitFor();
  await page.getByRole('alert').getByText('Busy. Wait.').waitFor({ state: 'hidden' });
});

test('a search shows its hits, tells which is which, and leads from one to the next', async () => {
  const page = await open('storyteller');
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

  // the rest comes back, dimmed, and the hit stays in view among it
  await page.getByRole('button', { name: 'Show the other lines, dimmed' }).click();
  await line(page, 'step 901 of the story').waitFor();
  await line(page, 'the Needle, the second').waitFor();
  await page.getByText('2 of 3', { exact: true }).waitFor();
  await page.keyboard.press('N');
  await line(page, 'needle number one').waitFor();
  await line(page, 'step 41 of the story').waitFor();
  await page.getByText('1 of 3', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Show the other lines, dimmed' }).click();
  await page.getByText('1 of 3', { exact: true }).waitFor();

  await page.getByRole('button', { name: 'Regular expression' }).click();
  await field.fill('needle(');
  await page.getByRole('alert').getByText(/regex/).waitFor();
  it.complaints.splice(0, Number.POSITIVE_INFINITY, ...it.complaints.filter((text) => !/status of 400/.test(text)));
  await field.fill('^(a third|the) [Nn]eedle');
  await page.getByText('2 hits', { exact: true }).waitFor();

  // that it is one is said before it is typed, and still when another is
  await page.getByRole('button', { name: 'Clear the search' }).click();
  await field.fill('^a third n.edle');
  await page.getByText('1 hit', { exact: true }).waitFor();
});

test('a line that was found is shown among its neighbours, and Back leads to what was found', async () => {
  const page = await open('storyteller', '?q=needle&level=warn');
  await expect.poll(() => page.getByRole('search').textContent()).toContain('2 hits');
  const found = line(page, 'needle number one');
  await found.hover();
  await found.getByRole('button', { name: 'Show in context' }).click();
  await line(page, 'step 39 of the story').waitFor();
  await line(page, 'step 41 of the story').waitFor();
  const position = await found.getAttribute('data-line');
  expect(page.url()).toMatch(new RegExp(`/logs#${position}$`));
  expect(await followSwitch(page).getAttribute('aria-checked')).toBe('false');
  await page.goBack();
  await page.getByText('1 of 2', { exact: true }).waitFor();
  expect(await lines(page)).toHaveLength(2);
});

test('a link to a line far back loads it, marks it and leaves it where it is', async () => {
  const { lines: first } = await it.read<LogPage>('/agents/storyteller/logs?after=0&limit=500');
  const wanted = first[420];
  const page = await open('storyteller', `#${wanted?.position}`);
  await line(page, 'step 420 of the story').waitFor();
  await line(page, 'step 421 of the story').waitFor();
  await page.keyboard.press('G');
  await line(page, 'step 1499 of the story').waitFor();
  await page.keyboard.press('g');
  await line(page, 'step 0 of the story').waitFor();
  await page.getByText('Beginning of the log').waitFor();
});

test('keys choose the level, wrap, walk and unfold, and keep out of fields', async () => {
  const page = await open('storyteller');
  const level = (name: string) => page.getByRole('radiogroup', { name: 'Show level' }).getByRole('radio', { name });
  await page.keyboard.press('4');
  await expect.poll(() => level('error').getAttribute('aria-checked')).toBe('true');
  await expect.poll(async () => (await lines(page)).length).toBe(4);
  await line(page, 'level info → debug, by ada').waitFor();
  await line(page, 'Hook stop failed: exit status 2: no such file').waitFor();
  expect(new URL(page.url()).searchParams.get('level')).toBe('error');
  await level('error').focus();
  await page.keyboard.press('ArrowRight');
  await expect.poll(() => level('fatal').getAttribute('aria-checked')).toBe('true');
  await page.keyboard.press('ArrowLeft');
  await expect.poll(() => level('error').getAttribute('aria-checked')).toBe('true');
  await logOf(page).focus();
  await page.keyboard.press('1');
  await line(page, 'step 1499 of the story').waitFor();
  expect(new URL(page.url()).search).toBe('');

  const long = line(page, /token ‹redacted›/);
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
  for (let step = 0; step < 40 && !/a third needle/.test(await focusedText(page)); step += 1) {
    await page.keyboard.press('j');
    await nextFrames(page);
  }
  await page.keyboard.press('Enter');
  await logOf(page).getByText('"exact": 12345678901234567890').waitFor();
  await page.keyboard.press('Enter');
  await logOf(page).getByText('"exact": 12345678901234567890').waitFor({ state: 'hidden' });

  await page.keyboard.press('/');
  await page.keyboard.type('wGg4');
  expect(await page.getByRole('searchbox', { name: 'Search log' }).inputValue()).toBe('wGg4');
  await page.getByText('No line is like this.').waitFor();
  await page.keyboard.press('Escape');
  expect(await page.getByRole('searchbox', { name: 'Search log' }).inputValue()).toBe('wGg4');
  await page.keyboard.press('Escape');
  await page.getByText('No line is like this.').waitFor({ state: 'hidden' });
  await expect.poll(async () => (await lines(page)).length).toBeGreaterThan(4);
  expect(new URL(page.url()).search).toBe('');
});

test('Esc leaves the search for what it found, where n and N lead on, and once more clears it', async () => {
  const page = await open('storyteller');
  const field = page.getByRole('searchbox', { name: 'Search log' });
  await page.keyboard.press('/');
  await page.keyboard.type('needle');
  // before it was searched for
  await page.keyboard.press('Escape');
  expect(await field.inputValue()).toBe('needle');
  const hits = page.getByRole('search').getByRole('status');
  await expect.poll(() => hits.textContent()).toMatch(/hits$/);
  await expect.poll(() => logOf(page).evaluate((log) => log.contains(document.activeElement))).toBe(true);
  await page.keyboard.press('N');
  await expect.poll(() => hits.textContent()).toMatch(/^\d+ of \d+$/);
  const first = Number.parseInt((await hits.textContent()) ?? '', 10);
  await page.keyboard.press('N');
  await expect.poll(async () => Number.parseInt((await hits.textContent()) ?? '', 10)).toBe(first - 1);
  await page.keyboard.press('n');
  await expect.poll(async () => Number.parseInt((await hits.textContent()) ?? '', 10)).toBe(first);
  await page.keyboard.press('Escape');
  await expect.poll(() => field.inputValue()).toBe('');
  await hits.waitFor({ state: 'detached' });
  expect(new URL(page.url()).pathname).toBe('/agents/storyteller/logs');
  await page.keyboard.press('Escape');
  await page.waitForURL(`${it.server.url}/`);
});

test('what a program wrote to act on a terminal is shown and does nothing', async () => {
  const page = await open('storyteller');
  await line(page, /red and ␛\[2J.+ ⟨202E⟩turned, <img src=x onerror=alert\(1\)>/).waitFor();
  expect(await logOf(page).locator('img').count()).toBe(0);
  await line(page, /at two \(b\.ts:2:2\)/).waitFor();
});

test('components and times narrow it down, and an address says all of it', async () => {
  const page = await open('storyteller');
  await page.getByRole('button', { name: 'Component' }).click();
  // the address says what is chosen, and the box follows it
  const outbox = page.getByRole('checkbox', { name: /^outbox/ });
  await outbox.click();
  await expect.poll(() => outbox.isChecked()).toBe(true);
  await page.keyboard.press('Escape');
  await expect.poll(async () => new Set(await components(page))).toEqual(new Set(['outbox']));
  const from = now - 200_000;
  await page.goto(`${page.url()}&from=${from}&to=${from + 60_000}`);
  await expect.poll(async () => (await lines(page)).length).toBe(7);
  const download = page.getByRole('link', { name: 'Download what is filtered' });
  const href = new URL((await download.getAttribute('href')) ?? '', it.server.url);
  expect(href.pathname).toBe('/api/v1/agents/storyteller/logs/download');
  expect(href.search).toBe(`?component=outbox&from=${from}&to=${from + 60_000}`);
});

test.each([360, 1280])(
  'at %i px it has no barrier axe knows of in light or dark, and does not scroll sideways',
  async (width) => {
    const page = await it.context.newPage();
    onTestFinished(() => page.close());
    await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
    await page.setViewportSize({ width, height: 740 });
    await page.goto(`${it.server.url}/agents/storyteller/logs?q=e`);
    await live(page);
    await logOf(page).locator('mark').first().waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
    expect(await logOf(page).evaluate((log) => log.scrollWidth - log.clientWidth)).toBe(0);
    expect(await logOf(page).evaluate((log) => log.clientHeight)).toBeGreaterThan(width < 640 ? 400 : 500);
    expect(await barriersInBothThemes(page)).toEqual([]);
  },
);

test('an agent that has written nothing says what to do', async () => {
  const quiet = new LogWriter(it.server, 'quiet');
  await quiet.arrive();
  const page = await open('quiet');
  await page.getByText('This agent has not written a log line yet.').waitFor();
  await quiet.numbered(1);
  await line(page, 'line 1').waitFor();
});

async function open(agentId: string, rest = ''): Promise<Page> {
  const page = await it.context.newPage();
  onTestFinished(() => page.close());
  await page.goto(`${it.server.url}/agents/${agentId}/logs${rest}`);
  await live(page);
  return page;
}

/** Not what the server's markup has in its place, which goes when the browser takes over. */
function logOf(page: Page): Locator {
  return page.getByRole('log', { name: 'Agent log' }).and(page.locator(':not([aria-busy])'));
}

function line(page: Page, text: string | RegExp): Locator {
  return logOf(page).locator('[data-line]').filter({ hasText: text }).first();
}

function followSwitch(page: Page): Locator {
  return page.getByRole('switch', { name: 'Follow' });
}

function lines(page: Page): Promise<string[]> {
  return logOf(page).locator('[data-line]').allInnerTexts();
}

function components(page: Page): Promise<(string | null)[]> {
  return logOf(page)
    .locator('[data-line] > [title]:not(time)')
    .evaluateAll((elements) => elements.map((element) => element.getAttribute('title')));
}

function focusedText(page: Page): Promise<string> {
  return page.evaluate(() => document.activeElement?.textContent ?? '');
}

function numberIn(text: string | null): number {
  return Number(/[\d,]+/.exec(text ?? '')?.[0].replaceAll(',', ''));
}

/** The numbers of the `line <number>` rows that are laid out, by their order on the screen; NaN for one that is not there. */
async function shownNumbers(page: Page): Promise<number[]> {
  return logOf(page)
    .locator('[data-row]')
    .evaluateAll((elements) =>
      elements
        .map((element) => ({ top: element.getBoundingClientRect().top, text: element.textContent ?? '' }))
        .sort((a, b) => a.top - b.top)
        .map(({ text }) => Number(/line (\d+)$/.exec(text)?.[1])),
    );
}

/** The first line the reader sees whole, and where it stands. */
function firstSeen(page: Page): Promise<{ text: string; top: number }> {
  return logOf(page).evaluate((log) => {
    const edge = log.getBoundingClientRect().top;
    const rows = [...log.querySelectorAll<HTMLElement>('[data-line]')]
      .map((row) => ({
        text: /line \d+$/.exec(row.textContent)?.[0] ?? '',
        top: row.getBoundingClientRect().top - edge,
      }))
      .filter(({ top }) => top >= 0)
      .sort((a, b) => a.top - b.top);
    return rows[0] ?? { text: '', top: Number.NaN };
  });
}

function nextFrames(page: Page): Promise<void> {
  return page.evaluate(
    () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve()))),
  );
}

function distanceFromEnd(page: Page): Promise<number> {
  return logOf(page).evaluate((log) => log.scrollHeight - log.scrollTop - log.clientHeight);
}
