import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import { EventWriter } from './event-writer';
import { LogWriter } from './log-writer';
import { adaptRecording } from './recordings';
import { userTurn } from './turn-events';

/** An agent's log box. Excludes the server-rendered markup, which stays busy until hydration. */
export function logOf(page: Page): Locator {
  return page.getByRole('log', { name: 'Agent log' }).and(page.locator(':not([aria-busy])'));
}

/** The first rendered line with this text. */
export function lineOf(page: Page, text: string | RegExp): Locator {
  return logOf(page).locator('[data-line]').filter({ hasText: text }).first();
}

export function followSwitch(page: Page): Locator {
  return page.getByRole('switch', { name: 'Follow' });
}

/** Pixels from the lower edge of the viewport to the end of the log. */
export function distanceFromEnd(page: Page): Promise<number> {
  return logOf(page).evaluate((log) => log.scrollHeight - log.scrollTop - log.clientHeight);
}

/** Scrolls from the end with the wheel. Resolves once the log has scrolled: following ends before, with the event. */
export async function scrollUp(page: Page, pixels: number): Promise<void> {
  await logOf(page).hover();
  await page.mouse.wheel(0, -pixels);
  await expect.poll(() => distanceFromEnd(page)).toBeGreaterThanOrEqual(pixels);
  await expect.poll(() => followSwitch(page).getAttribute('aria-checked')).toBe('false');
}

/** The first fully visible `line <number>` and its offset in pixels. */
export function firstSeen(page: Page): Promise<{ text: string; top: number }> {
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

/** Numbers of the rendered `line <number>` rows, top to bottom; NaN for rows not loaded. */
export async function shownNumbers(page: Page): Promise<number[]> {
  return logOf(page)
    .locator('[data-row]')
    .evaluateAll((elements) =>
      elements
        .map((element) => ({ top: element.getBoundingClientRect().top, text: element.textContent ?? '' }))
        .sort((a, b) => a.top - b.top)
        .map(({ text }) => Number(/line (\d+)$/.exec(text)?.[1])),
    );
}

/** Scrolls to a fraction of the log's height, as its scrollbar does. */
export function scrollToShare(page: Page, share: number): Promise<void> {
  return logOf(page).evaluate(
    (log, part) => log.scrollTo({ top: (log.scrollHeight - log.clientHeight) * part }),
    share,
  );
}

/** Milliseconds between lines of a recorded session's log. */
const TICK_MS = 400;

/** Milliseconds between turn starts in a long session. Each turn takes half of it. */
const EVERY_MS = 2_000;

interface Server {
  url: string;
  token: string;
}

/** Writes a recorded session and a log of its agent `<session>-deployer` that starts before it and ends after it. */
export async function writeRecorded(server: Server, session: string): Promise<void> {
  const agentId = `${session}-deployer`;
  const timed = adaptRecording('demo/deploy-watch', session).flatMap(({ at, events }) =>
    events.map((event) => ({ at, event })),
  );
  await new EventWriter(server, agentId).tell(session, timed);
  const [first, last] = [timed[0]?.at ?? 0, timed.at(-1)?.at ?? 0];
  const ticks = Math.ceil((last - first) / TICK_MS) + 40;
  await new LogWriter(server, agentId, `${agentId}-log`).write(
    Array.from({ length: ticks }, (_, index) => {
      const occurredAt = first + (index - 20) * TICK_MS;
      return { occurredAt, message: `tick at ${occurredAt}` };
    }),
  );
}

/** Writes a session with turns `r<number>` and two log lines per turn from its agent `<session>-patient`. */
export async function writeLong(server: Server, session: string, turns: number): Promise<void> {
  const agentId = `${session}-patient`;
  const beganAt = Date.now() - turns * EVERY_MS;
  const start = (at: number) => beganAt + at * EVERY_MS;
  await new EventWriter(server, agentId).tell(
    session,
    Array.from({ length: turns }, (_, index) => {
      const events = userTurn(`r${index}`, `Question ${index}`, `Answer ${index}`);
      return events.map((event, nth) => ({ at: start(index) + (nth === events.length - 1 ? EVERY_MS / 2 : 0), event }));
    }).flat(),
  );
  await new LogWriter(server, agentId, `${agentId}-log`).write(
    Array.from({ length: turns }, (_, index) => [
      { occurredAt: start(index) + 500, message: `working on ${index}` },
      { occurredAt: start(index) + 1_500, message: `waiting after ${index}` },
    ]).flat(),
  );
}

export const panelOf = (page: Page) => page.getByRole('region', { name: 'Log' });
export const showInLog = (place: Locator) => place.getByRole('button', { name: /^Show in log: / }).first();

/** The rendered `tick at` times, and which of them are shaded. */
export function ticks(page: Page): Promise<{ at: number; shaded: boolean }[]> {
  return logOf(page)
    .locator('[data-line]')
    .evaluateAll((rows) =>
      rows.map((row) => ({
        at: Number(/tick at (\d+)/.exec(row.textContent ?? '')?.[1]),
        shaded: row.hasAttribute('data-in-span'),
      })),
    );
}

/** Resolves once the span's start is in view and exactly its lines are shaded. */
export async function expectShaded(page: Page, from: number, to: number): Promise<void> {
  await expect
    .poll(async () => {
      const shown = await ticks(page);
      const isRight = shown.every(({ at, shaded }) => shaded === (at >= from && at <= to));
      return isRight && shown.some(({ at }) => at < from) && shown.some(({ shaded }) => shaded);
    })
    .toBe(true);
  const first = logOf(page).locator('[data-in-span]').first();
  await expect.poll(() => isInView(first, logOf(page))).toBe(true);
}

/** True if a row is completely inside a box. */
export async function isInView(row: Locator, box: Locator): Promise<boolean> {
  const [inner, outer] = [await row.boundingBox(), await box.boundingBox()];
  return inner !== null && outer !== null && inner.y >= outer.y - 1 && inner.y + inner.height <= outer.y + outer.height;
}
