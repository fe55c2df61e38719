import { afterAll, beforeAll, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { firstVisibleTurn, isFocused, live, transcriptOf, turnTop } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';

const TURNS = 300;

let it: OwnVisit;
beforeAll(async () => {
  it = await visitOwn();
  const turns = Array.from({ length: TURNS }, (_, at) =>
    userTurn(`r${at}`, `Question ${at}`, `Answer ${at}. ${'It takes some words. '.repeat((at * 7) % 40)}`),
  );
  await new EventWriter(it.server, 'patient').write('long', turns.flat(), { stepMs: 40 });
});
afterAll(async () => {
  await it.close();
  expect(it.complaints).toEqual([]);
});

test('a link to a turn far back loads back to it, scrolls there and marks it', async () => {
  const page = await it.open('/sessions/long#turn-r20');
  const turn = page.locator('[data-turn="r20"]');
  await page.locator('[data-turn="r20"].animate-flash').waitFor();
  await expect.poll(() => isFocused(turn)).toBe(true);
  await transcriptOf(page).getByText('Answer 20.').waitFor();
  const top = await turnTop(page, 'r20');
  expect(top).toBeGreaterThanOrEqual(-1);
  expect(top).toBeLessThan(100);
  // measured heights come in after the jump: it stays where it was put
  await live(page);
  expect(Math.abs(((await turnTop(page, 'r20')) ?? Number.NaN) - (top ?? 0))).toBeLessThanOrEqual(2);
  await page.close();
});

/** Whether a turn was in sight in a frame that was painted. */
interface Look {
  turn: string;
  inSight: boolean;
}

test('the first that is painted of a session is its end, and it stays there while the page comes to life', async () => {
  const page = await it.context.newPage();
  await page.addInitScript(() => {
    const looks: Look[] = [];
    // It is asked in each frame, after all that moves things and before the paint. What comes in between two frames
    // nobody sees before the next.
    const observer = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        if (!target.isConnected) continue;
        looks.push({ turn: (target as HTMLElement).dataset.turn ?? '', inSight: isIntersecting });
      }
    });
    const observe = () => {
      for (const turn of document.querySelectorAll('[role=log] [data-turn]')) observer.observe(turn);
    };
    new MutationObserver(observe).observe(document, { childList: true, subtree: true });
    Object.assign(window, { looks });
  });
  await page.goto(`${it.server.url}/sessions/long`);
  await live(page);
  const looks = await page.evaluate(() => (window as unknown as { looks: Look[] }).looks);
  expect(looks).toContainEqual({ turn: `r${TURNS - 1}`, inSight: true });
  expect(looks.filter(({ turn, inSight }) => inSight && Number(turn.slice(1)) < TURNS - 15)).toEqual([]);
  await page.close();
});

test('a reader who is ahead of the transcript’s code finds what they read where it was once that has come', async () => {
  const page = await it.context.newPage();
  const first = new Set<string>();
  const held: (() => void)[] = [];
  await page.route('**/*.js', (route) => {
    const { pathname } = new URL(route.request().url());
    if (first.has(pathname)) return route.continue();
    held.push(() => void route.continue());
  });
  await page.route('**/sessions/long', async (route) => {
    const response = await route.fetch();
    const markup = await response.text();
    for (const [path] of markup.matchAll(/\/_next\/static\/[^"\\]+\.js/g)) first.add(path);
    await route.fulfill({ response, body: markup });
  });
  await page.goto(`${it.server.url}/sessions/long`);
  // What is above it works already.
  await live(page);
  const box = transcriptOf(page);
  await box.getByText(`Answer ${TURNS - 1}.`).waitFor();
  await box.evaluate((element) => element.scrollBy(0, -600));
  await box.focus();
  const turn = await firstVisibleTurn(page);
  const top = await turnTop(page, turn ?? '');
  // The tops of what is in sight, in each frame.
  await page.evaluate((id) => {
    const tops: (number | null)[] = [];
    Object.assign(window, { tops });
    const look = () => {
      const found = document.querySelector(`[role=log] [data-turn="${id}"]`)?.getBoundingClientRect();
      tops.push(found === undefined || found.height === 0 ? null : Math.round(found.top));
      requestAnimationFrame(look);
    };
    look();
  }, turn);
  expect(held.length).toBeGreaterThan(0);
  for (const go of held) go();
  await page.locator('[role=log] [data-index]').first().waitFor();
  await expect.poll(() => isFocused(box)).toBe(true);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const tops = await page.evaluate(() => (window as unknown as { tops: (number | null)[] }).tops);
  expect(tops).not.toContain(null);
  expect(Math.max(...(tops as number[])) - Math.min(...(tops as number[]))).toBeLessThanOrEqual(2);
  expect(Math.abs(((await turnTop(page, turn ?? '')) ?? Number.NaN) - (top ?? 0))).toBeLessThanOrEqual(2);
  await page.close();
});

test('a link to a turn that is not there opens the session at its end', async () => {
  const page = await it.open('/sessions/long#turn-nowhere');
  await transcriptOf(page)
    .getByText(`Answer ${TURNS - 1}.`)
    .waitFor();
  await page.close();
});

test('older turns come in above the reader without moving what they read', async () => {
  const page = await it.context.newPage();
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route(/\/transcript\?.*before=/, async (route) => {
    await released;
    await route.continue();
  });
  await page.goto(`${it.server.url}/sessions/long`);
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

test('a wheel turned upwards passes every turn in order, down to the first', async () => {
  const page = await it.open('/sessions/long');
  await live(page);
  await transcriptOf(page).hover();
  const passed: number[] = [];
  while (passed.at(-1) !== 0) {
    await page.mouse.wheel(0, -700);
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    passed.push(Number((await firstVisibleTurn(page)).slice(1)));
    expect(passed.length).toBeLessThan(2_000);
  }
  for (const [at, turn] of passed.entries()) {
    const last = passed[at - 1] ?? TURNS;
    expect(turn, `after ${passed.slice(0, at)}`).toBeLessThanOrEqual(last);
  }
  await page.getByText('Beginning of the session').waitFor();
  await page.close();
});

type Page = Awaited<ReturnType<OwnVisit['open']>>;

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

/** Notes where a turn stands in every frame from now on. */
async function recordTops(page: Page, turnId: string): Promise<{ stop: () => Promise<number[]> }> {
  await page.evaluate((id) => {
    const tops: number[] = [];
    let isOver = false;
    const look = () => {
      const turn = document.querySelector(`[data-turn="${id}"]`);
      tops.push(turn === null ? Number.NaN : turn.getBoundingClientRect().top);
      if (!isOver) requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
    Object.assign(window, {
      stopLooking: () => {
        isOver = true;
        return tops;
      },
    });
  }, turnId);
  return { stop: () => page.evaluate(() => (window as unknown as { stopLooking: () => number[] }).stopLooking()) };
}
