import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { firstVisibleTurn, isFocused, transcriptOf, turnTop } from '../support/transcript-page';
import { message, taskEnded, taskStarted, toolCall, userTurn, wokenTurn } from '../support/turn-events';
import { perFile, visit } from '../support/visit';

/** Too narrow for the session list, through whose rows Tab would have to pass. */
const NARROW = { width: 800, height: 800 };

const site = perFile(visit);
let agent: EventWriter;
beforeAll(async () => {
  agent = new EventWriter(site.server, 'keyboard');
  const turns = Array.from({ length: 25 }, (_, index) =>
    userTurn(`r${index}`, `Question ${index}`, `Answer ${index}\n\nand more`),
  );
  const work = [
    ...toolCall('call-1', 'Bash', { command: 'make check' }, 'all 212 checks passed'),
    taskStarted('t1', 'Nightly build'),
    ...message('m1', 'It builds.'),
  ];
  await agent.write('keyboard-walk', [
    ...userTurn('first', 'Build the keyed mill', work),
    taskEnded('t1', 'failed', { exit_code: 2, summary: 'two targets are missing' }),
    ...wokenTurn('woken', 't1', 'The build failed.'),
  ]);
  await agent.write('keyboard-long', turns.flat());
});

test('keys alone lead from the list into a session, a tool call and the task that woke the agent, and back', async () => {
  const page = await site.open('/?agent=keyboard');
  await page.setViewportSize(NARROW);
  const row = page.getByRole('navigation', { name: 'Sessions' }).getByRole('link', { name: /Build the keyed mill/ });
  await row.waitFor();
  await page.keyboard.press('j');
  for (let step = 0; step < 2 && !(await isFocused(row)); step += 1) await page.keyboard.press('j');
  expect(await isFocused(row)).toBe(true);
  await expectVisibleFocus(page);
  await page.keyboard.press('Enter');
  await transcriptOf(page).getByRole('article', { name: 'User turn' }).waitFor();

  await tabTo(page, /^Bash ?make check/);
  await expectVisibleFocus(page);
  await page.keyboard.press('Enter');
  await page.getByText('all 212 checks passed').waitFor();
  expect(await page.evaluate(() => document.activeElement?.getAttribute('aria-expanded'))).toBe('true');
  await page.keyboard.press('Enter');
  await page.getByText('all 212 checks passed').waitFor({ state: 'hidden' });

  await page.keyboard.press('w');
  const woken = page.getByRole('article', { name: 'Between-run turn: woken by Nightly build (failed, exit 2)' });
  await expect.poll(() => isFocused(woken)).toBe(true);
  await expectVisibleFocus(page);
  await page.keyboard.press('Tab');
  await expectVisibleFocus(page);
  await page.keyboard.press('Enter');
  await expect.poll(() => isFocused(page.getByRole('group', { name: 'Task Nightly build: failed' }))).toBe(true);
  await tabTo(page, /^Woke the agent/);
  await page.keyboard.press('Enter');
  await expect.poll(() => isFocused(woken)).toBe(true);
  await page.keyboard.press('Escape');
  // The list keeps its filter.
  await page.waitForURL(`${site.server.url}/?agent=keyboard`);
  await expect.poll(() => isFocused(row)).toBe(true);
  await site.leave(page);
});

test('a scrolled-up transcript stays in place, counts new turns, and jumps to the end on a key', async () => {
  const page = await site.open('/sessions/keyboard-long');
  await page.setViewportSize(NARROW);
  await transcriptOf(page).getByText('Answer 24').waitFor();
  // First its tab, then the transcript itself.
  await tabTo(page, /^Transcript$/);
  await expectVisibleFocus(page);
  await tabTo(page, /^Transcript$/);
  await expectVisibleFocus(page);
  for (let press = 0; press < 3; press += 1) await page.keyboard.press('PageUp');
  await page.getByRole('button', { name: 'Jump to latest' }).waitFor();
  await settled(page);
  const turn = await firstVisibleTurn(page);
  const top = await turnTop(page, turn);

  await agent.write('keyboard-long', userTurn('new-1', 'And now?', 'Something new'));
  await page.getByRole('button', { name: /^2 new ?, jump to latest$/ }).waitFor();
  await agent.write('keyboard-long', userTurn('new-2', 'More?', 'Something newer'));
  const jump = page.getByRole('button', { name: /^4 new ?, jump to latest$/ });
  await jump.waitFor();
  expect(await turnTop(page, turn)).toBe(top);

  await page.keyboard.press('G');
  await transcriptOf(page).getByText('Something newer').waitFor();
  await jump.waitFor({ state: 'hidden' });
  // At the end the page follows again.
  await agent.write('keyboard-long', userTurn('new-3', 'Still there?', 'The newest of all'));
  await transcriptOf(page).getByText('The newest of all').waitFor();
  await expect.poll(() => distanceFromEnd(page)).toBeLessThanOrEqual(1);

  await page.keyboard.press('Home');
  await page.getByRole('button', { name: 'Jump to latest' }).click();
  await expect.poll(() => distanceFromEnd(page)).toBeLessThanOrEqual(1);
  await site.leave(page);
});

test('j and k move between turns, and "?" lists every key', async () => {
  const page = await site.open('/sessions/keyboard-walk');
  await page.setViewportSize(NARROW);
  const first = transcriptOf(page).getByRole('article').first();
  await first.waitFor();
  await page.keyboard.press('Home');
  await expect.poll(() => isFocused(first)).toBe(true);
  await page.keyboard.press('j');
  await expect.poll(() => isFocused(transcriptOf(page).getByRole('article').nth(1))).toBe(true);
  await page.keyboard.press('?');
  const keys = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
  await keys.getByText('Next turn the agent started').waitFor();
  await page.keyboard.press('Escape');
  await keys.waitFor({ state: 'hidden' });
  // With the dialog closed, the page handles its keys again.
  await page.keyboard.press('k');
  await expect.poll(() => isFocused(first)).toBe(true);
  expect(new URL(page.url()).pathname).toBe('/sessions/keyboard-walk');
  await site.leave(page);
});

test('Esc leaves the session search, then clears it, then leaves the session', async () => {
  const page = await site.open('/sessions/keyboard-long');
  const field = page.getByRole('searchbox', { name: 'Search sessions' });
  const rows = page.locator('[data-session-row]');
  await field.waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('keyed mill');
  // The open session stays above what is found.
  await expect.poll(() => rows.count()).toBe(2);
  await page.keyboard.press('Escape');
  expect(await field.inputValue()).toBe('keyed mill');
  expect(await isFocused(field)).toBe(false);
  await page.keyboard.press('j');
  await expect.poll(() => isFocused(rows.nth(1))).toBe(true);
  await page.keyboard.press('Escape');
  await expect.poll(() => field.inputValue()).toBe('');
  expect(new URL(page.url()).pathname).toBe('/sessions/keyboard-long');
  await page.keyboard.press('Escape');
  await page.waitForURL(`${site.server.url}/`);
  await site.leave(page);
});

/** Presses Tab until the focused element has this name. */
async function tabTo(page: Page, name: RegExp): Promise<void> {
  const seen: string[] = [];
  for (let press = 0; press < 80; press += 1) {
    await page.keyboard.press('Tab');
    const focused = await page.evaluate(() => {
      const element = document.activeElement as HTMLElement | null;
      return (element?.ariaLabel ?? element?.textContent ?? '').replace(/\s+/g, ' ').trim();
    });
    if (name.test(focused)) return;
    seen.push(focused.slice(0, 40));
  }
  throw new Error(`Tab never came to ${name}, only to: ${seen.join(' | ')}`);
}

async function expectVisibleFocus(page: Page): Promise<void> {
  const outline = await page.evaluate(() => {
    const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement as Element);
    return { isDrawn: outlineStyle !== 'none', width: Number.parseFloat(outlineWidth) };
  });
  expect(outline.isDrawn).toBe(true);
  expect(outline.width).toBeGreaterThanOrEqual(1);
}

/** Resolves once the transcript has not moved for five frames. */
async function settled(page: Page): Promise<void> {
  await transcriptOf(page).evaluate(async (log) => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    for (let still = 0, before = -1; still < 5; ) {
      await frame();
      still = log.scrollTop === before ? still + 1 : 0;
      before = log.scrollTop;
    }
  });
}

function distanceFromEnd(page: Page): Promise<number> {
  return transcriptOf(page).evaluate((log) => log.scrollHeight - log.scrollTop - log.clientHeight);
}
