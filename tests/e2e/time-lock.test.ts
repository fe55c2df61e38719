import type { Task, Turn } from '@interlude/protocol/read-models';
import type { Locator, Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import {
  expectShaded,
  isInView,
  logOf,
  panelOf,
  showInLog,
  ticks,
  writeLong,
  writeRecorded,
} from '../support/log-page';
import { LogWriter } from '../support/log-writer';
import { isFocused, transcriptOf } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { perFile, visit } from '../support/visit';
import { WireRunner } from '../support/wire-runner';

const RECORDED = 'time-lock-recorded';
const LONG = 'time-lock-long';

const site = perFile(visit);
beforeAll(async () => {
  await writeRecorded(site.server, RECORDED);
  await writeLong(site.server, LONG, 200);
});

/** Comes from another page, because a link to the current session keeps its state. */
async function open(session: string): Promise<Page> {
  await site.leave(await site.open('/agents'));
  const page = await site.open(`/sessions/${session}`);
  await transcriptOf(page).getByRole('article').first().waitFor();
  return page;
}

test('shades and shows the lines of a chosen turn or task until it is dismissed', async () => {
  const { turns } = await site.read<{ turns: Turn[] }>(`/sessions/${RECORDED}/transcript`);
  const { tasks } = await site.read<{ tasks: Task[] }>(`/sessions/${RECORDED}/tasks`);
  const betweenRun = turns.findLast(({ kind }) => kind === 'between-run') as Turn;
  const watch = tasks.find(({ description }) => description === 'Watch the rollout') as Task;
  const page = await open(RECORDED);
  const turn = page.locator(`[data-turn="${betweenRun.id}"]`);
  await showInLog(turn).click();
  await expectShaded(page, betweenRun.startedAt, betweenRun.endedAt ?? 0);
  expect(await showInLog(turn).getAttribute('aria-pressed')).toBe('true');
  await panelOf(page).getByRole('link', { name: 'Between-run turn: woken by Watch the rollout (completed)' }).waitFor();

  const card = transcriptOf(page).getByRole('group', { name: 'Task Watch the rollout: completed' });
  await transcriptOf(page).press('Home');
  await card.scrollIntoViewIfNeeded();
  await card.getByRole('button', { name: 'Show in log: task “Watch the rollout”' }).click();
  await expectShaded(page, watch.startedAt, watch.endedAt ?? 0);
  await panelOf(page).getByRole('button', { name: 'Release Task “Watch the rollout”' }).click();
  await expect.poll(async () => (await ticks(page)).some(({ shaded }) => shaded)).toBe(false);

  // A click on the turn chooses it as well, and a second one changes nothing.
  await transcriptOf(page).press('End');
  await turn.getByRole('paragraph').first().click();
  await expectShaded(page, betweenRun.startedAt, betweenRun.endedAt ?? 0);
  await turn.getByRole('paragraph').first().click();
  expect(await showInLog(turn).getAttribute('aria-pressed')).toBe('true');
  await site.leave(page);
});

test('shades new lines while a chosen turn runs, and none after its end', async () => {
  const agent = new EventWriter(site.server, 'time-lock-busy');
  const log = new LogWriter(site.server, 'time-lock-busy', 'time-lock-busy-log');
  const start = Date.now();
  await log.write([{ occurredAt: start - 100, message: `tick at ${start - 100}` }]);
  const run = userTurn('open', 'Go on', 'On my way');
  await agent.tell(
    'time-lock-open',
    run.slice(0, -1).map((event) => ({ at: start, event })),
  );
  const page = await open('time-lock-open');
  await showInLog(page.locator('[data-turn="open"]')).click();
  await panelOf(page).getByText('until now').waitFor();
  const tick = (ms: number) => log.write([{ occurredAt: start + ms, message: `tick at ${start + ms}` }]);
  await tick(1_000);
  const shaded = async () => (await ticks(page)).map((line) => [line.at - start, line.shaded]);
  await expect.poll(shaded).toEqual([
    [-100, false],
    [1_000, true],
  ]);
  await agent.tell('time-lock-open', [{ at: start + 2_000, event: run.at(-1) as (typeof run)[number] }]);
  await tick(3_000);
  await expect.poll(shaded).toEqual([
    [-100, false],
    [1_000, true],
    [3_000, false],
  ]);
  await panelOf(page).getByText('for 2.0 s').waitFor();
  await site.leave(page);
});

test('moves by keys from a line to the turn that ran then, loaded or not, and from a turn to its lines', async () => {
  const page = await open(LONG);
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
  await page.locator('[data-turn="r0"].animate-flash').waitFor();
  await expect.poll(() => status.textContent()).toMatch(/in\s*User turn “Question 0”/);
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await expect.poll(() => status.textContent()).toMatch(/after\s*User turn “Question 0”/);
  // The focus stays in the log.
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
  await site.leave(page);
});

test('names the tasks that ran when a clicked line was written, and links to their cards', async () => {
  const { tasks } = await site.read<{ tasks: Task[] }>(`/sessions/${RECORDED}/tasks`);
  const watch = tasks.find(({ description }) => description === 'Watch the rollout') as Task;
  const page = await open(RECORDED);
  const card = transcriptOf(page).getByRole('group', { name: 'Task Watch the rollout: completed' });
  await transcriptOf(page).press('Home');
  await card.getByRole('button', { name: 'Show in log: task “Watch the rollout”' }).click();
  await expectShaded(page, watch.startedAt, watch.endedAt ?? 0);
  await logOf(page).locator('[data-in-span]').first().click();
  const status = panelOf(page).getByRole('status').filter({ hasText: 'ran:' });
  await expect.poll(() => status.textContent()).toMatch(/ran:[\s\S]*Watch the rollout/);
  await status.getByRole('link', { name: '“Watch the rollout”', exact: true }).click();
  await expect.poll(() => isFocused(card)).toBe(true);
  // A log at another place no longer names what ran at the line before.
  await card.getByRole('button', { name: 'Show in log: task “Watch the rollout”' }).click();
  await card.getByRole('button', { name: 'Show in log: task “Watch the rollout”' }).click();
  await status.waitFor({ state: 'hidden' });
  await page.getByRole('button', { name: 'Log below the transcript' }).click();
  await site.leave(page);
});

test('the panel is resized by mouse and by keys, and keeps its height across a reload', async () => {
  const page = await open(RECORDED);
  const button = page.getByRole('button', { name: 'Log below the transcript' });
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
  expect(await panelOf(page).getByRole('link', { name: 'Open full log' }).getAttribute('href')).toBe(
    `/agents/${RECORDED}-deployer/logs`,
  );
  await page.getByRole('button', { name: 'Close the log' }).click();
  await logOf(page).waitFor({ state: 'hidden' });
  await site.leave(page);
});

test('the log replaces the transcript at 360 px, and a line leads back to it', async () => {
  const page = await open(RECORDED);
  await page.setViewportSize({ width: 360, height: 740 });
  // The page learns of its new size after the window has it.
  await page.getByRole('button', { name: 'Log below the transcript' }).waitFor({ state: 'hidden' });
  await page.keyboard.press('l');
  await expect.poll(() => isFocused(logOf(page))).toBe(true);
  await page.getByRole('tab', { name: 'Log', selected: true }).waitFor();
  const line = logOf(page).locator('[data-line]').first();
  await line.click();
  const place = panelOf(page).getByRole('status').getByRole('link').first();
  await place.waitFor();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(360);
  await place.click();
  await logOf(page).waitFor({ state: 'hidden' });
  await expect.poll(() => page.evaluate(() => document.activeElement?.hasAttribute('data-turn'))).toBe(true);
  await page.getByRole('tab', { name: 'Log' }).click();
  await page.goBack();
  await logOf(page).waitFor({ state: 'hidden' });
  await page.getByRole('tab', { name: 'Log' }).click();
  await page.reload();
  await logOf(page).waitFor();
  await page.getByRole('tab', { name: 'Transcript' }).click();
  await site.leave(page);
});

test('the transcript keeps half of the height beside a pinned request and the log', async () => {
  const agent = new EventWriter(site.server, 'time-lock-half');
  const lines = Array.from({ length: 60 }, (_, index) => `Paragraph ${index}`).join('\n\n');
  const asked = {
    request_id: 'ask',
    kind: 'permission',
    tool_name: 'Bash',
    title: 'Clean',
    input: { command: 'rm -rf build' },
  };
  await agent.write('time-lock-half', [
    ...userTurn('r1', 'Go on', lines).slice(0, -1),
    { type: 'CUSTOM', name: 'request:opened', value: asked },
  ]);
  const runner = await WireRunner.connect(site.server, 'time-lock-half');
  const page = await open('time-lock-half');
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.keyboard.press('l');
  await panelOf(page).waitFor();
  await transcriptOf(page).press('Home');
  const pinned = page.getByRole('group', { name: 'Waiting for you' });
  await pinned.waitFor();
  const box = async (of: Locator) => (await of.boundingBox()) ?? { y: 0, height: 0 };
  const composer = page.getByRole('form', { name: 'Composer' });
  await expect.poll(async () => (await box(panelOf(page))).height).toBeGreaterThan(100);
  const [read, ask, write, log] = await Promise.all([transcriptOf(page), pinned, composer, panelOf(page)].map(box));
  // The request ends at the composer.
  expect(Math.abs((ask?.y ?? 0) + (ask?.height ?? 0) - (write?.y ?? 0))).toBeLessThan(1);
  expect(read?.height).toBeGreaterThanOrEqual((ask?.height ?? 0) + (log?.height ?? 0));
  await page.keyboard.press('l');
  runner.leave();
  await site.leave(page);
});
