import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Task, Turn } from '@/lib/protocol/read-models';
import { barriers, barriersInBothThemes } from '../support/barriers';
import { EventWriter } from '../support/event-writer';
import { LogWriter } from '../support/log-writer';
import { adaptRecording } from '../support/read-recording';
import { isFocused, live, transcriptOf } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';

const TURNS = 200;
/** The turns of the long session begin this far apart, and run for half of it. */
const EVERY_MS = 2_000;
const TICK_MS = 400;

let it: OwnVisit;
let beganAt = 0;
beforeAll(async () => {
  it = await visitOwn();
  const told = adaptRecording('demo/deploy-watch', 'recorded').flatMap(({ at, events }) =>
    events.map((event) => ({ at, event })),
  );
  await new EventWriter(it.server, 'deployer').tell('recorded', told);
  const [first, last] = [told[0]?.at ?? 0, told.at(-1)?.at ?? 0];
  const ticks = Math.ceil((last - first) / TICK_MS) + 40;
  await new LogWriter(it.server, 'deployer', 'deployer-log').write(
    Array.from({ length: ticks }, (_, at) => {
      const occurredAt = first + (at - 20) * TICK_MS;
      return { occurredAt, message: `tick at ${occurredAt}` };
    }),
  );

  beganAt = Date.now() - TURNS * EVERY_MS;
  const start = (at: number) => beganAt + at * EVERY_MS;
  await new EventWriter(it.server, 'patient').tell(
    'long',
    Array.from({ length: TURNS }, (_, at) => {
      const events = userTurn(`r${at}`, `Question ${at}`, `Answer ${at}`);
      return events.map((event, nth) => ({ at: start(at) + (nth === events.length - 1 ? EVERY_MS / 2 : 0), event }));
    }).flat(),
  );
  await new LogWriter(it.server, 'patient', 'patient-log').write(
    Array.from({ length: TURNS }, (_, at) => [
      { occurredAt: start(at) + 500, message: `working on ${at}` },
      { occurredAt: start(at) + 1_500, message: `waiting after ${at}` },
    ]).flat(),
  );
});
afterAll(async () => {
  await it.close();
  expect(it.complaints).toEqual([]);
});

const logOf = (page: Page) => page.getByRole('log', { name: 'Agent log' });
const panelOf = (page: Page) => page.getByRole('region', { name: 'Log' });
const showInLog = (place: Locator) => place.getByRole('button', { name: /^Show in log: / }).first();
const flashed = (page: Page, turnId: string) => page.locator(`[data-turn="${turnId}"].animate-flash`);

async function open(path: string, width = 1280): Promise<Page> {
  const page = await it.open(path);
  if (width !== 1280) await page.setViewportSize({ width, height: 740 });
  await live(page);
  await transcriptOf(page).getByRole('article').first().waitFor();
  return page;
}

/** The times of the lines that are laid out, and which of them are shaded. */
function lines(page: Page): Promise<{ at: number; shaded: boolean }[]> {
  return logOf(page)
    .locator('[data-line]')
    .evaluateAll((rows) =>
      rows.map((row) => ({
        at: Number(/tick at (\d+)/.exec(row.textContent ?? '')?.[1]),
        shaded: row.hasAttribute('data-in-span'),
      })),
    );
}

/** Resolves once the lines in view are those at the beginning of the span, and of them exactly those in it are shaded. */
async function expectShaded(page: Page, from: number, to: number): Promise<void> {
  await expect
    .poll(async () => {
      const shown = await lines(page);
      const isRight = shown.every(({ at, shaded }) => shaded === (at >= from && at <= to));
      return isRight && shown.some(({ at }) => at < from) && shown.some(({ shaded }) => shaded);
    })
    .toBe(true);
  const first = logOf(page).locator('[data-in-span]').first();
  await expect.poll(() => isInView(first, logOf(page))).toBe(true);
}

async function isInView(row: Locator, box: Locator): Promise<boolean> {
  const [inner, outer] = [await row.boundingBox(), await box.boundingBox()];
  return inner !== null && outer !== null && inner.y >= outer.y - 1 && inner.y + inner.height <= outer.y + outer.height;
}

test('a turn and a task lead to their stretch of the log, which is shaded, until they are let go of', async () => {
  const { turns } = await it.read<{ turns: Turn[] }>('/sessions/recorded/transcript');
  const { tasks } = await it.read<{ tasks: Task[] }>('/sessions/recorded/tasks');
  const woken = turns.findLast(({ kind }) => kind === 'between-run') as Turn;
  const watch = tasks.find(({ description }) => description === 'Watch the rollout') as Task;
  const page = await open('/sessions/recorded');
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  const turn = page.locator(`[data-turn="${woken.id}"]`);
  expect(asked.filter((path) => path.includes('/logs'))).toEqual([]);

  await showInLog(turn).click();
  await expectShaded(page, woken.startedAt, woken.endedAt ?? 0);
  expect(await showInLog(turn).getAttribute('aria-pressed')).toBe('true');
  await panelOf(page).getByRole('link', { name: 'Between-run turn: woken by Watch the rollout (completed)' }).waitFor();

  const card = transcriptOf(page).getByRole('group', { name: 'Task Watch the rollout: completed' });
  await transcriptOf(page).press('Home');
  await card.scrollIntoViewIfNeeded();
  await card.getByRole('button', { name: 'Show in log: task Watch the rollout' }).click();
  await expectShaded(page, watch.startedAt, watch.endedAt ?? 0);
  await panelOf(page).getByRole('button', { name: 'Let go of Task Watch the rollout' }).click();
  await expect.poll(async () => (await lines(page)).some(({ shaded }) => shaded)).toBe(false);

  // with the log beside it, a click on the turn itself does the same, and another one lets it be
  await transcriptOf(page).press('End');
  await turn.getByRole('paragraph').first().click();
  await expectShaded(page, woken.startedAt, woken.endedAt ?? 0);
  await turn.getByRole('paragraph').first().click();
  expect(await showInLog(turn).getAttribute('aria-pressed')).toBe('true');
  await page.close();
});

test('the stretch of a turn that still runs grows with it and ends with it', async () => {
  const agent = new EventWriter(it.server, 'busy');
  const log = new LogWriter(it.server, 'busy', 'busy-log');
  const start = Date.now();
  await log.write([{ occurredAt: start - 100, message: `tick at ${start - 100}` }]);
  const run = userTurn('open', 'Go on', 'On my way');
  await agent.tell(
    'open',
    run.slice(0, -1).map((event) => ({ at: start, event })),
  );
  const page = await open('/sessions/open');
  await showInLog(page.locator('[data-turn="open"]')).click();
  await panelOf(page).getByText('until now').waitFor();
  const tick = (ms: number) => log.write([{ occurredAt: start + ms, message: `tick at ${start + ms}` }]);
  await tick(1_000);
  const shaded = async () => (await lines(page)).map((line) => [line.at - start, line.shaded]);
  await expect.poll(shaded).toEqual([
    [-100, false],
    [1_000, true],
  ]);
  await agent.tell('open', [{ at: start + 2_000, event: run.at(-1) as (typeof run)[number] }]);
  await tick(3_000);
  await expect.poll(shaded).toEqual([
    [-100, false],
    [1_000, true],
    [3_000, false],
  ]);
  await panelOf(page).getByText('for 2.0 s').waitFor();
  await page.close();
});

test('by keys alone a line leads to the turn that ran then, loaded or not, and a turn to its lines', async () => {
  const page = await open('/sessions/long');
  // a page that is not alive yet hears no key
  await live(page);
  await page.keyboard.press('l');
  await expect.poll(() => isFocused(logOf(page))).toBe(true);
  await page.keyboard.press('g');
  const first = logOf(page).locator('[data-line]').filter({ hasText: 'working on 0' });
  await first.waitFor();
  await expect.poll(() => isInView(first, logOf(page))).toBe(true);
  const status = panelOf(page).getByRole('status').filter({ hasText: 'User turn' });
  for (let press = 0; press < 8 && !(await isFocused(first)); press += 1) await page.keyboard.press('k');
  expect(await isFocused(first)).toBe(true);
  expect(await page.locator('[data-turn="r0"]').count()).toBe(0);

  await page.keyboard.press('Enter');
  await flashed(page, 'r0').waitFor();
  await expect.poll(() => status.textContent()).toMatch(/in\s*User turn “Question 0”/);
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await expect.poll(() => status.textContent()).toMatch(/after\s*User turn “Question 0”/);
  // who reads the log goes on reading it
  expect(await logOf(page).evaluate((log) => log.contains(document.activeElement))).toBe(true);

  await page.keyboard.press('Escape');
  await logOf(page).waitFor({ state: 'hidden' });
  await expect.poll(() => page.evaluate(() => document.activeElement?.closest('[role=log]') !== null)).toBe(true);
  await page.keyboard.press('j');
  const turnId = await page.evaluate(() => (document.activeElement as HTMLElement | null)?.dataset.turn);
  await page.keyboard.press('L');
  const nth = Number(turnId?.slice(1));
  await expect.poll(() => logOf(page).locator('[data-in-span]').allInnerTexts()).toHaveLength(1);
  expect(await logOf(page).locator('[data-in-span]').textContent()).toContain(`working on ${nth}`);
  expect(await showInLog(page.locator(`[data-turn="${turnId}"]`)).getAttribute('aria-pressed')).toBe('true');
  await page.keyboard.press('l');
  await page.keyboard.press('Escape');
  await page.close();
});

test('asked for while it still loads, the log has the focus once it is there, unless that is elsewhere by then', async () => {
  const page = await open('/sessions/long');
  await page.getByRole('button', { name: 'Log', exact: true }).click();
  await logOf(page).waitFor();
  let answer = () => {};
  let held = Promise.resolve();
  await page.route(/\/logs\?/, async (route) => {
    await held;
    await route.continue();
  });
  const reloadedAndAsked = async () => {
    held = new Promise((resolve) => {
      answer = resolve;
    });
    await page.reload();
    await live(page);
    await panelOf(page).waitFor();
    expect(await logOf(page).count()).toBe(0);
    await page.keyboard.press('l');
    await expect.poll(() => isFocused(panelOf(page))).toBe(true);
  };
  await reloadedAndAsked();
  answer();
  await expect.poll(() => isFocused(logOf(page))).toBe(true);

  await reloadedAndAsked();
  const composer = page.getByRole('textbox', { name: 'Message to patient' });
  await composer.focus();
  answer();
  await logOf(page).waitFor();
  expect(await isFocused(composer)).toBe(true);
  await composer.evaluate((field) => (field as HTMLElement).blur());
  await page.keyboard.press('l');
  await expect.poll(() => isFocused(logOf(page))).toBe(true);
  await page.keyboard.press('l');
  await logOf(page).waitFor({ state: 'hidden' });
  await page.close();
});

test('a click on a line says which tasks ran then, and leads to their cards', async () => {
  const { tasks } = await it.read<{ tasks: Task[] }>('/sessions/recorded/tasks');
  const watch = tasks.find(({ description }) => description === 'Watch the rollout') as Task;
  const page = await open('/sessions/recorded');
  const card = transcriptOf(page).getByRole('group', { name: 'Task Watch the rollout: completed' });
  await transcriptOf(page).press('Home');
  await card.getByRole('button', { name: 'Show in log: task Watch the rollout' }).click();
  await expectShaded(page, watch.startedAt, watch.endedAt ?? 0);
  await logOf(page).locator('[data-in-span]').first().click();
  const status = panelOf(page).getByRole('status').filter({ hasText: 'ran:' });
  await expect.poll(() => status.textContent()).toMatch(/ran:[\s\S]*Watch the rollout/);
  await status.getByRole('link', { name: 'Watch the rollout', exact: true }).click();
  await expect.poll(() => isFocused(card)).toBe(true);
  // brought elsewhere, the log no longer says what ran when a line was written that is out of sight
  await card.getByRole('button', { name: 'Show in log: task Watch the rollout' }).click();
  await card.getByRole('button', { name: 'Show in log: task Watch the rollout' }).click();
  await status.waitFor({ state: 'hidden' });
  await page.getByRole('button', { name: 'Log', exact: true }).click();
  await page.close();
});

test('the panel takes as much height as it is given, by mouse or by keys, and has it again after a reload', async () => {
  const page = await open('/sessions/recorded');
  const button = page.getByRole('button', { name: 'Log', exact: true });
  expect(await button.getAttribute('aria-expanded')).toBe('false');
  await button.click();
  const edge = page.getByRole('separator', { name: 'Log height' });
  const percent = async () => Number(await edge.getAttribute('aria-valuenow'));
  const height = async () => (await panelOf(page).boundingBox())?.height ?? 0;
  await logOf(page).waitFor();
  const [usual, before] = [await percent(), await height()];
  await edge.focus();
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  expect(await percent()).toBeGreaterThan(usual);
  expect(await height()).toBeGreaterThan(before);
  const box = await edge.boundingBox();
  if (box === null) throw new Error('the edge is not there');
  await page.mouse.move(box.x + 300, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + 300, box.y - 60, { steps: 4 });
  await page.mouse.up();
  const drawn = await percent();
  expect(await edge.evaluate((handle) => handle.getBoundingClientRect().top)).toBeLessThan(box.y - 40);

  await page.reload();
  await logOf(page).waitFor();
  expect(await percent()).toBe(drawn);
  expect(await isFocused(logOf(page))).toBe(false);
  expect(await panelOf(page).getByRole('link', { name: 'Open the whole log' }).getAttribute('href')).toBe(
    '/agents/deployer/logs',
  );
  await page.getByRole('button', { name: 'Close the log' }).click();
  await logOf(page).waitFor({ state: 'hidden' });
  await page.close();
});

test('at 360 px the log takes the place of the transcript, and a line leads back to it', async () => {
  const page = await open('/sessions/recorded', 360);
  await page.getByRole('button', { name: 'Log', exact: true }).click();
  await expect.poll(() => isFocused(logOf(page))).toBe(true);
  const line = logOf(page).locator('[data-line]').first();
  await line.click();
  const place = panelOf(page).getByRole('status').getByRole('link').first();
  await place.waitFor();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
  expect(await barriers(page)).toEqual([]);
  await place.click();
  await logOf(page).waitFor({ state: 'hidden' });
  await expect.poll(() => page.evaluate(() => document.activeElement?.hasAttribute('data-turn'))).toBe(true);
  await page.getByRole('button', { name: 'Log', exact: true }).click();
  await page.getByRole('button', { name: 'Back to the transcript' }).click();
  await logOf(page).waitFor({ state: 'hidden' });
  // a session opens with its transcript
  await page.getByRole('button', { name: 'Log', exact: true }).click();
  await page.reload();
  await live(page);
  expect(await logOf(page).count()).toBe(0);
  await page.close();
});

test('has no barrier axe knows of, light or dark', async () => {
  const page = await open('/sessions/recorded');
  await showInLog(
    transcriptOf(page)
      .getByRole('article', { name: /^Between-run turn/ })
      .last(),
  ).click();
  await logOf(page).locator('[data-in-span]').first().click();
  await panelOf(page).getByText('that turn').waitFor();
  expect(await barriersInBothThemes(page)).toEqual([]);
  await page.getByRole('button', { name: 'Close the log' }).click();
  await page.close();
});
