import type { Page, Request } from 'playwright-core';
import { expect, test } from 'vitest';
import { SETTLE_MS } from '@/components/ui/misclick-guard';
import { workingAgent } from '../support/agent-pages';
import { EventWriter } from '../support/event-writer';
import {
  clickOnceMoved,
  expectNoClickOnSlidingCard,
  openSettledCard,
  SCROLLS,
  topOf,
} from '../support/permission-card';
import { press, untilPressable } from '../support/press';
import { live } from '../support/transcript-page';
import { taskEnded, userTurn } from '../support/turn-events';
import { perFile, visit } from '../support/visit';
import { turnOf } from '../support/wire-runner';

const site = perFile(visit);

test('card that moves up when the one above it goes ignores a click while the wheel turns', async () => {
  await expectNoClickOnSlidingCard(site, 'meant-up', { scroll: SCROLLS['the wheel'], isFollowed: false });
});

test('card that moves up with the followed end ignores a click while an arrow key is held', async () => {
  await expectNoClickOnSlidingCard(site, 'meant-end', { scroll: SCROLLS['an arrow key'], isFollowed: true });
});

test('settled card takes a click at once when the reader has scrolled it', async () => {
  const { page, allow, runner, close } = await openSettledCard(site, 'meant-scrolled');
  const clicked = clickOnceMoved(allow, await topOf(allow));
  await page.mouse.wheel(0, 40);
  await clicked;
  expect((await runner.next('permission.decision')).body).toMatchObject({ requestId: 'a', behavior: 'allow' });
  await close();
});

test('Ctrl+. meant for the previous turn does not interrupt one that has just begun', async () => {
  const { page, agent, sessionId, runner, close } = await workingAgent(site, 'meant-interrupt');
  const interrupt = page.getByRole('button', { name: 'Interrupt' });
  await untilPressable(interrupt);
  await page.getByRole('textbox', { name: /^Message to/ }).focus();
  // From within the page, the keys are pressed as the button of the new turn appears.
  const pressed = page.evaluate(async (settlesMs) => {
    const find = () => [...document.querySelectorAll('button')].find((one) => one.textContent === 'Interrupt');
    while (find() !== undefined) await new Promise(requestAnimationFrame);
    while (find() === undefined) await new Promise(requestAnimationFrame);
    const start = performance.now();
    // On a busy page fewer presses come early enough.
    for (let presses = 0; presses < 4 && performance.now() - start < settlesMs / 2; presses += 1) {
      const key = new KeyboardEvent('keydown', { key: '.', ctrlKey: true, bubbles: true, cancelable: true });
      document.activeElement?.dispatchEvent(key);
      await new Promise((resolve) => setTimeout(resolve, 90));
    }
    return find() !== undefined;
  }, SETTLE_MS);
  await agent.write(sessionId, [turnOf('RUN_FINISHED', 'second', [])]);
  await interrupt.waitFor({ state: 'hidden' });
  await agent.write(sessionId, [turnOf('RUN_STARTED', 'third', [])]);
  expect(await pressed).toBe(true);
  await untilPressable(interrupt);
  expect(runner.commands).toEqual([]);
  await page.keyboard.press('Control+.');
  expect((await runner.next('interrupt')).body).toMatchObject({ turnId: 'third' });
  await close();
});

/** Collects the paths of the POST requests that the page makes until `stop`. */
function postsOf(page: Page) {
  const posts: string[] = [];
  const note = (request: Request) => void (request.method() === 'POST' && posts.push(new URL(request.url()).pathname));
  page.on('request', note);
  return { posts, stop: () => page.off('request', note) };
}

test('parked task that moves up to the place of another ignores a click meant for that one', async () => {
  const writer = new EventWriter(site.server, 'meant-parker');
  await writer.write('meant-parker-1', userTurn('r1', 'Watch it', 'Gladly'));
  await writer.write('meant-parker-2', userTurn('r1', 'Something else', 'Gladly'));
  await writer.park(
    'meant-parker-2',
    ['a', 'b', 'c'].map((id) => taskEnded(`task-${id}`, 'completed')),
  );
  const page = await site.open('/agents/meant-parker');
  await live(page);
  const { posts, stop } = postsOf(page);
  for (const id of ['a', 'b']) await page.getByLabel(`Session of task “task-${id}”`).selectOption('meant-parker-1');
  const assign = page.getByRole('button', { name: 'Assign task “task-b”' });
  const discard = page.getByRole('button', { name: /discard task “task-c”$/i });
  await untilPressable(assign);
  await untilPressable(discard);
  const clicked = Promise.all([
    clickOnceMoved(assign, await topOf(assign)),
    clickOnceMoved(discard, await topOf(discard)),
  ]);
  // Someone else discards the first task.
  const [first] = await page
    .locator('[data-parked]')
    .evaluateAll((rows) => rows.map((row) => row.getAttribute('data-parked')));
  const elsewhere = await fetch(`${site.server.url}/api/v1/agents/meant-parker/parked/${first}/discard`, {
    method: 'POST',
    headers: { authorization: `Bearer ${site.server.token}` },
  });
  expect(elsewhere.status).toBe(200);
  for (const { up } of await clicked) expect(up).toBeGreaterThan(20);
  expect(posts).toEqual([]);
  expect(await discard.textContent()).toMatch(/^Discard/);
  // The second click of a double click does not confirm the first one.
  await press(discard);
  await discard.evaluate((button: HTMLElement) => button.click());
  await untilPressable(assign);
  expect(posts).toEqual([]);
  await press(assign);
  await page.getByRole('heading', { name: 'Unassigned 1' }).waitFor();
  expect(posts).toHaveLength(1);
  stop();
  await site.leave(page);
});
