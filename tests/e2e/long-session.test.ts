import type { Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { writeManyTurns } from '../support/event-writer';
import { firstVisibleTurn, isFocused, live, transcriptOf, turnTop } from '../support/transcript-page';
import { perFile, visit } from '../support/visit';

const TURNS = 300;
const SESSION = 'long-session';

const site = perFile(visit);
beforeAll(() => writeManyTurns(site.server, SESSION, TURNS));

test('loads back to a linked turn, scrolls to it, focuses and marks it', async () => {
  const page = await site.load(`/sessions/${SESSION}#turn-r20`);
  const turn = page.locator('[data-turn="r20"]');
  await page.locator('[data-turn="r20"].animate-flash').waitFor();
  await expect.poll(() => isFocused(turn)).toBe(true);
  await transcriptOf(page).getByText('Answer 20.').waitFor();
  const top = await turnTop(page, 'r20');
  expect(top).toBeGreaterThanOrEqual(-1);
  expect(top).toBeLessThan(100);
  // Heights measured after the jump do not move it.
  await live(page);
  expect(Math.abs(((await turnTop(page, 'r20')) ?? Number.NaN) - (top ?? 0))).toBeLessThanOrEqual(2);
  await page.close();
});

test('reports that a link leads to no turn of the session, and opens it at its end', async () => {
  const page = await site.load(`/sessions/${SESSION}#turn-nowhere`);
  const notice = page.getByRole('status', { name: 'Link', exact: true });
  await notice.getByText('The linked turn is not in this session. Showing its newest turns.').waitFor();
  await transcriptOf(page)
    .getByText(`Answer ${TURNS - 1}.`)
    .waitFor();
  await notice.getByRole('button', { name: 'Dismiss' }).click();
  await expect.poll(() => notice.textContent()).toBe('');
  await page.evaluate(() => {
    location.hash = 'turn-r20';
  });
  await transcriptOf(page).getByText('Answer 20.').waitFor();
  expect(await notice.textContent()).toBe('');
  await page.evaluate(() => {
    location.hash = 'task-99999999';
  });
  await notice.getByText('The linked task is not in this session.').waitFor();
  await page.close();
});

/** One painted frame of a turn. */
interface Frame {
  turn: string;
  inSight: boolean;
}

test('paints the end of a session first, and stays there while the page hydrates', async () => {
  const page = await site.context.newPage();
  await page.addInitScript(() => {
    const frames: Frame[] = [];
    // An IntersectionObserver reports after the layout of each frame, before its paint.
    const observer = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        if (!target.isConnected) continue;
        frames.push({ turn: (target as HTMLElement).dataset.turn ?? '', inSight: isIntersecting });
      }
    });
    const observe = () => {
      for (const turn of document.querySelectorAll('[role=log] [data-turn]')) observer.observe(turn);
    };
    new MutationObserver(observe).observe(document, { childList: true, subtree: true });
    Object.assign(window, { frames });
  });
  await page.goto(`${site.server.url}/sessions/${SESSION}`);
  await live(page);
  const frames = await page.evaluate(() => (window as unknown as { frames: Frame[] }).frames);
  expect(frames).toContainEqual({ turn: `r${TURNS - 1}`, inSight: true });
  expect(frames.filter(({ turn, inSight }) => inSight && Number(turn.slice(1)) < TURNS - 15)).toEqual([]);
  await page.close();
});

test('shows no old turn of a page that has arrived in part', async () => {
  const page = await site.context.newPage();
  await page.route(`**/sessions/${SESSION}`, async (route) => {
    const html = await (await route.fetch()).text();
    const end = html.indexOf('document.currentScript.previousElementSibling');
    await route.fulfill({ contentType: 'text/html', body: html.slice(0, html.lastIndexOf('<script', end)) });
  });
  await page.goto(`${site.server.url}/sessions/${SESSION}`);
  const turns = page.locator('[data-turn]');
  expect(await turns.count()).toBeGreaterThan(5);
  for (const turn of await turns.all()) expect(await turn.isVisible()).toBe(false);
  await page.close();
});

test('keeps the reader’s turn in its place while older turns load above it', async () => {
  const page = await site.context.newPage();
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route(/\/transcript\?.*before=/, async (route) => {
    await released;
    await route.continue();
  });
  await page.goto(`${site.server.url}/sessions/${SESSION}`);
  await live(page);
  const asked = page.waitForRequest(/\/transcript\?.*before=/);
  await transcriptOf(page).hover();
  await scrollUpUntil(page, asked);
  const turn = await firstVisibleTurn(page);
  const height = () => transcriptOf(page).evaluate((log) => log.scrollHeight);
  const before = await height();
  const tops = recordTops(page, turn);
  release();
  await expect.poll(height).toBeGreaterThan(before + 2_000);
  const seen = await (await tops).stop();
  expect(seen.length).toBeGreaterThan(1);
  expect(Math.max(...seen) - Math.min(...seen)).toBeLessThanOrEqual(2);
  await page.close();
});

async function scrollUpUntil(page: Page, done: Promise<unknown>): Promise<void> {
  let over = false;
  void done.then(() => {
    over = true;
  });
  while (!over) {
    await page.mouse.wheel(0, -300);
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  }
  await done;
}

/** Records the top of a turn in every later frame, in pixels. */
async function recordTops(page: Page, turnId: string): Promise<{ stop: () => Promise<number[]> }> {
  await page.evaluate((id) => {
    const tops: number[] = [];
    let isOver = false;
    const recordFrame = () => {
      const turn = document.querySelector(`[data-turn="${id}"]`);
      tops.push(turn === null ? Number.NaN : turn.getBoundingClientRect().top);
      if (!isOver) requestAnimationFrame(recordFrame);
    };
    requestAnimationFrame(recordFrame);
    Object.assign(window, {
      stopLooking: () => {
        isOver = true;
        return tops;
      },
    });
  }, turnId);
  return { stop: () => page.evaluate(() => (window as unknown as { stopLooking: () => number[] }).stopLooking()) };
}
