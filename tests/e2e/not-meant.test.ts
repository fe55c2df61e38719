import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SETTLE_MS } from '@/components/ui/stillness';
import { agentAtWork } from '../support/agent-at-work';
import { EventWriter } from '../support/event-writer';
import { press, takesPresses } from '../support/press';
import { live, transcriptOf } from '../support/transcript-page';
import { message, taskEnded, userTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';
import { requestOpened, requestResolved, turnOf } from '../support/wire-runner';

let it: OwnVisit;
beforeAll(async () => {
  it = await visitOwn();
});
afterAll(() => it.close());

/** An agent at work, its runner connected, and its page. */
async function meet(name: string) {
  const { agent, runner, page, sessionId, close } = await agentAtWork(it, name);
  const write = (...events: Parameters<EventWriter['write']>[1]) => agent.write(sessionId, events);
  const ask = (id: string, command: string) =>
    write(
      requestOpened({ request_id: id, kind: 'permission', tool_name: 'Bash', title: `Ask ${id}`, input: { command } }),
    );
  return { runner, page, write, ask, close };
}

const allowOf = (page: Page, id: string) =>
  transcriptOf(page)
    .getByRole('region', { name: `Permission: Ask ${id}` })
    .getByRole('button', { name: 'Allow' });

/**
 * Clicks it 120 ms after it has moved by more than anybody misses, from within the page: no test driver is that quick.
 *
 * @param before where it stood before whatever moves it
 * @returns how far it came up, and whether it still waits for a press
 */
function clickOnceMoved(button: Locator, before: number): Promise<{ up: number; isOffered: boolean }> {
  return button.evaluate(async (element, before) => {
    const top = () => element.getBoundingClientRect().top;
    while (Math.abs(top() - before) < 20) await new Promise(requestAnimationFrame);
    await new Promise((resolve) => setTimeout(resolve, 120));
    const up = before - top();
    (element as HTMLElement).click();
    for (let frames = 0; frames < 3; frames += 1) await new Promise(requestAnimationFrame);
    return { up, isOffered: element.isConnected };
  }, before);
}

/** How far it stands from the upper edge of the window. */
const topOf = (button: Locator) => button.evaluate((element) => element.getBoundingClientRect().top);

const SCROLLING: [string, (page: Page) => Promise<void>][] = [
  ['turns the wheel', (page) => page.mouse.wheel(0, 1)],
  ['holds an arrow key', (page) => page.keyboard.press('ArrowDown')],
];

for (const where of ['nothing scrolls', 'the end is followed'] as const) {
  test.each(SCROLLING)(
    `where ${where} a card that slides under the pointer of a reader who %s takes no click`,
    async (how, scroll) => {
      const { page, ask, write, runner, close } = await meet(`${how} where ${where}`);
      if (where !== 'nothing scrolls') await write(...message('long', 'One more line\n\n'.repeat(60)));
      await ask('a', 'ls');
      await ask('b', 'rm -rf ~');
      await takesPresses(allowOf(page, 'a'));
      await takesPresses(allowOf(page, 'b'));
      await transcriptOf(page).hover();
      let isOver = false;
      const scrolling = (async () => {
        while (!isOver) await scroll(page);
      })();
      const sliding = allowOf(page, where === 'nothing scrolls' ? 'b' : 'a');
      const clicked = clickOnceMoved(sliding, await topOf(sliding));
      if (where === 'nothing scrolls') await write(requestResolved('a', 'cancelled'));
      else await write(...message('more', 'And one more\n\n'.repeat(5)));
      const { up, isOffered } = await clicked;
      isOver = true;
      await scrolling;
      expect(up).toBeGreaterThan(20);
      expect(isOffered).toBe(true);
      await takesPresses(sliding);
      expect(runner.commands).toEqual([]);
      await close();
    },
  );
}

test('a reader who scrolled by themselves may press at once what was settled before', async () => {
  const { page, ask, write, runner, close } = await meet('scroller');
  await write(...message('long', 'One more line\n\n'.repeat(60)));
  await ask('a', 'ls');
  await write(...message('more', 'And one more\n\n'.repeat(4)));
  const allow = allowOf(page, 'a');
  await allow.waitFor();
  await transcriptOf(page).hover();
  await transcriptOf(page).evaluate((box) => box.scrollTo(0, box.scrollHeight - box.clientHeight - 60));
  await takesPresses(allow);
  const clicked = clickOnceMoved(allow, await topOf(allow));
  await page.mouse.wheel(0, 40);
  await clicked;
  expect((await runner.next('permission.decision')).body).toMatchObject({ requestId: 'a', behavior: 'allow' });
  await close();
});

test('and so may one whose scrolling the busy page comes to late', async () => {
  const { page, ask, write, runner, close } = await meet('busy scroller');
  await write(...message('long', 'One more line\n\n'.repeat(60)));
  await ask('a', 'ls');
  await write(...message('more', 'And one more\n\n'.repeat(4)));
  const allow = allowOf(page, 'a');
  await allow.waitFor();
  await transcriptOf(page).hover();
  await transcriptOf(page).evaluate((box) => box.scrollTo(0, box.scrollHeight - box.clientHeight - 60));
  await takesPresses(allow);
  await page.evaluate(() => {
    const beBusy = () => {
      const since = performance.now();
      while (performance.now() - since < 600);
    };
    window.addEventListener('wheel', beBusy, { once: true, passive: true });
  });
  const clicked = clickOnceMoved(allow, await topOf(allow));
  await page.mouse.wheel(0, 40);
  expect((await clicked).isOffered).toBe(false);
  expect((await runner.next('permission.decision')).body).toMatchObject({ requestId: 'a', behavior: 'allow' });
  await close();
});

test('Ctrl+. that was meant for the turn before interrupts none that has just begun', async () => {
  const { page, write, runner, close } = await meet('hasty');
  const interrupt = page.getByRole('button', { name: 'Interrupt' });
  await takesPresses(interrupt);
  await page.getByRole('textbox', { name: /^Message to/ }).focus();
  // the keys come as the button of the new turn does, from within the page
  const pressed = page.evaluate(async () => {
    const find = () => [...document.querySelectorAll('button')].find((one) => one.textContent === 'Interrupt');
    while (find() !== undefined) await new Promise(requestAnimationFrame);
    while (find() === undefined) await new Promise(requestAnimationFrame);
    const start = performance.now();
    for (let presses = 0; presses < 4; presses += 1) {
      const key = new KeyboardEvent('keydown', { key: '.', ctrlKey: true, bubbles: true, cancelable: true });
      document.activeElement?.dispatchEvent(key);
      await new Promise((resolve) => setTimeout(resolve, 90));
    }
    return { after: performance.now() - start, isOffered: find() !== undefined };
  });
  await write(turnOf('RUN_FINISHED', 'second', []));
  await interrupt.waitFor({ state: 'hidden' });
  await write(turnOf('RUN_STARTED', 'third', []));
  const { after, isOffered } = await pressed;
  expect(after).toBeLessThan(SETTLE_MS);
  expect(isOffered).toBe(true);
  await takesPresses(interrupt);
  expect(runner.commands).toEqual([]);
  await page.keyboard.press('Control+.');
  expect((await runner.next('interrupt')).body).toMatchObject({ turnId: 'third' });
  await close();
});

/** Clicks it 120 ms after there is such a button, as a hand does that was on its way to what stood there before. */
function clickOnceThere(page: Page, name: string): Promise<{ isOffered: boolean }> {
  return page.evaluate(async (name) => {
    const find = () => [...document.querySelectorAll('button')].find((one) => one.textContent === name);
    while (find() === undefined) await new Promise(requestAnimationFrame);
    await new Promise((resolve) => setTimeout(resolve, 120));
    find()?.click();
    for (let frames = 0; frames < 3; frames += 1) await new Promise(requestAnimationFrame);
    return { isOffered: find() !== undefined };
  }, name);
}

/** What the page asks to be done from now on. */
function postsOf(page: Page): string[] {
  const posts: string[] = [];
  page.on('request', (request) => void (request.method() === 'POST' && posts.push(new URL(request.url()).pathname)));
  return posts;
}

test('a parked task that moves up to where another one stood takes no click that was meant for that', async () => {
  const writer = new EventWriter(it.server, 'parker');
  await writer.write('parker-1', userTurn('r1', 'Watch it', 'Gladly'));
  await writer.write('parker-2', userTurn('r1', 'Something else', 'Gladly'));
  await writer.park(
    'parker-2',
    ['a', 'b', 'c'].map((id) => taskEnded(`task-${id}`, 'completed')),
  );
  const page = await it.open('/agents/parker');
  await live(page);
  const posts = postsOf(page);
  for (const id of ['a', 'b']) await page.getByLabel(`Session of task task-${id}`).selectOption('parker-1');
  const assign = page.getByRole('button', { name: 'Assign task task-b' });
  const discard = page.getByRole('button', { name: /discard task task-c$/i });
  await takesPresses(assign);
  await takesPresses(discard);
  const clicked = Promise.all([
    clickOnceMoved(assign, await topOf(assign)),
    clickOnceMoved(discard, await topOf(discard)),
  ]);
  // somebody else settles the one above
  const [first] = await page
    .locator('[data-parked]')
    .evaluateAll((rows) => rows.map((row) => row.getAttribute('data-parked')));
  const elsewhere = await fetch(`${it.server.url}/api/v1/agents/parker/parked/${first}/discard`, {
    method: 'POST',
    headers: { authorization: `Bearer ${it.server.token}` },
  });
  expect(elsewhere.status).toBe(200);
  for (const { up } of await clicked) expect(up).toBeGreaterThan(20);
  expect(posts).toEqual([]);
  expect(await discard.textContent()).toMatch(/^Discard/);
  // nor does what a first press asks take the second click of two
  await press(discard);
  await discard.evaluate((button: HTMLElement) => button.click());
  await takesPresses(assign);
  expect(posts).toEqual([]);
  await press(assign);
  await page.getByRole('heading', { name: 'Parked 1' }).waitFor();
  expect(posts).toHaveLength(1);
  await page.close();
});

test('what a failed message offers is not pressed by who was about to press something else', async () => {
  const { page, runner, close } = await meet('failing');
  const composer = page.getByRole('textbox', { name: /^Message to/ });
  await composer.fill('Once and not twice');
  await composer.press('Enter');
  const command = await runner.next('message');
  const posts = postsOf(page);
  const clicked = clickOnceThere(page, 'Try again');
  await runner.acknowledge(command, 'failed', 'no room');
  expect(await clicked).toEqual({ isOffered: true });
  const again = page.getByRole('button', { name: 'Try again' });
  await takesPresses(again);
  expect(posts).toEqual([]);
  await press(again);
  expect((await runner.next('message')).body.text).toBe('Once and not twice');
  await close();
});

test('a request that was withdrawn is not dismissed by who was about to deny it', async () => {
  const { page, ask, write, close } = await meet('withdrawn');
  await ask('a', 'ls');
  await takesPresses(allowOf(page, 'a'));
  const card = transcriptOf(page).getByRole('region', { name: 'Permission: Ask a' });
  await card.focus();
  const clicked = clickOnceThere(page, 'Dismiss');
  await write(requestResolved('a', 'cancelled'));
  expect(await clicked).toEqual({ isOffered: true });
  await press(card.getByRole('button', { name: 'Dismiss' }));
  await card.getByText('Nothing was sent').waitFor({ state: 'detached' });
  await close();
});
