import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { breakableProxy } from '../support/test-proxies';
import { resolvesWithin } from '../support/timing';
import {
  badgeOf,
  expectFrozen,
  expectMoving,
  expectStill,
  expectUnsent,
  live,
  reconnecting,
  transcriptOf,
  visibleText,
} from '../support/transcript-page';
import { message, movingTurn } from '../support/turn-events';
import { CUT_REQUESTS, perFile, visitOwn } from '../support/visit';
import { turnOf } from '../support/wire-runner';

/** A page detects within this time that a server accepts connections and sends nothing. */
const NOTICED_MS = 25_000;
const HOUR_MS = 3_600_000;
/** Moves the server's clock five hours ahead on the first SIGUSR2, and ten hours back on the second. */
const MOVED_CLOCK = `
  let by = 0;
  const moves = [5, -10];
  const Real = Date;
  globalThis.Date = class extends Real {
    constructor(...given) { given.length === 0 ? super(Real.now() + by) : super(...given); }
    static now() { return Real.now() + by; }
  };
  process.on('SIGUSR2', () => { by += (moves.shift() ?? 0) * ${HOUR_MS}; });
`;

const site = perFile(() =>
  visitOwn({
    chromium: { reducedMotion: 'no-preference' },
    env: { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(MOVED_CLOCK)}` },
    proxy: ({ url }) => breakableProxy(url),
  }),
);

test('every page reports a silent server within 25 s, stops its clocks, and resumes by itself', async () => {
  const agent = new EventWriter(site.server, 'frozen');
  await agent.staysInTouch();
  await agent.write('frozen-session', movingTurn());
  const session = await site.open('/sessions/frozen-session');
  await session.setViewportSize({ width: 1680, height: 900 });
  const others = await Promise.all(
    ['/', '/agents', '/agents/frozen', '/agents/frozen/logs'].map((path) => site.open(path)),
  );
  const pages = [session, ...others];
  for (const page of pages) await live(page);
  await expectMoving(session, { agent, sessionId: 'frozen-session' }, 'breathe', 'turn', 'caret');

  process.kill(site.server.pid, 'SIGSTOP');
  try {
    await resolvesWithin(NOTICED_MS, Promise.all(pages.map(reconnecting)));
    await Promise.all(pages.map(expectFrozen));
    await expectUnsent(session, 'Are you there?');
  } finally {
    process.kill(site.server.pid, 'SIGCONT');
  }
  for (const page of pages) await live(page);
  await expectMoving(session, { agent, sessionId: 'frozen-session' }, 'breathe', 'turn', 'caret');
  const now = await visibleText(session);
  await expect.poll(() => visibleText(session)).not.toBe(now);
  await transcriptOf(session).getByText('Queued').waitFor();
  await agent.write('frozen-session', [{ type: 'TEXT_MESSAGE_CONTENT', messageId: 'a2', delta: ', still' }]);
  await transcriptOf(session).getByText('Running them now, still').waitFor();
  expect(await transcriptOf(session).getByText('Are you there?').count()).toBe(1);
});

/** A tab with a clock that the test moves, and its own connection on that clock. */
async function withOwnClock(path: string): Promise<{ page: Page; move: (hours: number) => Promise<void> }> {
  const page = await site.context.newPage();
  await page.addInitScript(() => {
    Reflect.deleteProperty(globalThis, 'SharedWorker');
    const Real = Date;
    const clock = { by: 0 };
    const now = () => Real.now() + clock.by;
    Object.assign(globalThis, { clock });
    globalThis.Date = new Proxy(Real, {
      construct: (target, given) => Reflect.construct(target, given.length === 0 ? [now()] : given),
      get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
    });
  });
  await page.goto(`${site.proxy.origin}${path}`);
  const move = (by: number) =>
    page.evaluate((ms) => {
      (globalThis as unknown as { clock: { by: number } }).clock.by += ms;
    }, by * HOUR_MS);
  return { page, move };
}

test('a page detects a dead line within 25 s though its connections stay open, whichever way its clock is moved', async () => {
  const agent = new EventWriter(site.server, 'dead-line');
  await agent.staysInTouch();
  await agent.write('dead-line-session', [turnOf('RUN_STARTED', 'open', [])]);
  const tabs = await Promise.all(
    [0, 5, -5].map(async (hours) => ({ hours, ...(await withOwnClock('/sessions/dead-line-session')) })),
  );
  for (const { page } of tabs) await live(page);
  for (const { page } of tabs) await page.getByRole('button', { name: 'Interrupt', exact: true }).waitFor();
  site.proxy.swallow();
  await Promise.all(
    tabs.map(async ({ page, move, hours }) => {
      await move(hours);
      await resolvesWithin(NOTICED_MS, reconnecting(page));
      expect(await badgeOf(page).textContent()).toMatch(/as of \d\d:\d\d:\d\d, /);
      // A clock that jumps ahead looks to the page as if the machine had slept.
      if (hours <= 0) await expectFrozen(page);
      else await expectStill(page);
    }),
  );
  site.proxy.mend();
  for (const { page } of tabs) await live(page);
  await agent.write('dead-line-session', message('m', 'Here again'));
  for (const { page } of tabs) {
    await transcriptOf(page).getByText('Here again').waitFor();
    await expectMoving(page, { agent, sessionId: 'dead-line-session' }, 'breathe');
    await page.close();
  }
  // The browser logs the requests in progress when the line was mended.
  site.complaints.splice(0, Infinity, ...site.complaints.filter((one) => !CUT_REQUESTS.test(one)));
});

test('a page resumes with correct clocks when the server’s clock was moved while it was silent', async () => {
  const agent = new EventWriter(site.server, 'moved');
  await agent.staysInTouch();
  await agent.write('moved-session', [turnOf('RUN_STARTED', 'open', [])]);
  const page = await site.open('/sessions/moved-session');
  for (const title of ['Hours ahead', 'Hours back']) {
    await live(page);
    process.kill(site.server.pid, 'SIGSTOP');
    await resolvesWithin(NOTICED_MS, reconnecting(page));
    await expectFrozen(page);
    process.kill(site.server.pid, 'SIGUSR2');
    process.kill(site.server.pid, 'SIGCONT');
    await live(page);
    await agent.write('moved-session', message(title, title));
    await transcriptOf(page).getByText(title).waitFor();
    await expectMoving(page, { agent, sessionId: 'moved-session' }, 'breathe');
    expect(await page.locator('main header time').first().textContent()).toMatch(/^(\d min )?\d+ s\s?$/);
  }
});
