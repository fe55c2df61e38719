import { beforeAll, expect, test } from 'vitest';
import { writeManyTurns } from '../support/event-writer';
import { firstVisibleTurn, isFocused, live, transcriptOf, turnTop } from '../support/transcript-page';
import { perFile, visit } from '../support/visit';

const TURNS = 300;
const SESSION = 'long-session-all';

const site = perFile(visit);
beforeAll(() => writeManyTurns(site.server, SESSION, TURNS));

test('keeps in place the turn that a reader scrolled to before the transcript’s code loaded', async () => {
  const page = await site.context.newPage();
  const first = new Set<string>();
  const held: (() => void)[] = [];
  await page.route('**/*.js', (route) => {
    const { pathname } = new URL(route.request().url());
    if (first.has(pathname)) return route.continue();
    held.push(() => void route.continue());
  });
  await page.route(`**/sessions/${SESSION}`, async (route) => {
    const response = await route.fetch();
    const markup = await response.text();
    for (const [path] of markup.matchAll(/\/_next\/static\/[^"\\]+\.js/g)) first.add(path);
    await route.fulfill({ response, body: markup });
  });
  await page.goto(`${site.server.url}/sessions/${SESSION}`);
  // The parts above the transcript have hydrated.
  await live(page);
  const box = transcriptOf(page);
  await box.getByText(`Answer ${TURNS - 1}.`).waitFor();
  await box.evaluate((element) => element.scrollBy(0, -600));
  await box.focus();
  const turn = await firstVisibleTurn(page);
  const top = await turnTop(page, turn ?? '');
  await page.evaluate((id) => {
    const tops: (number | null)[] = [];
    Object.assign(window, { tops });
    const check = () => {
      const found = document.querySelector(`[role=log] [data-turn="${id}"]`)?.getBoundingClientRect();
      tops.push(found === undefined || found.height === 0 ? null : Math.round(found.top));
      requestAnimationFrame(check);
    };
    check();
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

test('passes every turn in order while the wheel scrolls up to the first', async () => {
  const page = await site.open(`/sessions/${SESSION}`);
  await transcriptOf(page)
    .getByText(`Answer ${TURNS - 1}.`)
    .waitFor();
  await transcriptOf(page).hover();
  const passed: number[] = [];
  while (passed.at(-1) !== 0) {
    await page.mouse.wheel(0, -700);
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    passed.push(Number((await firstVisibleTurn(page)).slice(1)));
    expect(passed.length).toBeLessThan(2_000);
  }
  for (const [index, turn] of passed.entries()) {
    const last = passed[index - 1] ?? TURNS;
    expect(turn, `after ${passed.slice(0, index)}`).toBeLessThanOrEqual(last);
  }
  await page.getByText('Beginning of the session').waitFor();
  await site.leave(page);
});
