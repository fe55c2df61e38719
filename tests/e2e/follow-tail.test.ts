import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import { barriersInBothThemes } from '../support/barriers';
import { EventWriter } from '../support/event-writer';
import { removeTurnsBefore } from '../support/remove-turns';
import { firstVisibleTurn, isFocused, live, transcriptOf, turnTop } from '../support/transcript-page';
import { message, taskEnded, taskStarted, userTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';

let it: OwnVisit;
beforeAll(async () => {
  it = await visitOwn();
});
afterAll(async () => {
  await it.close();
  expect(it.complaints).toEqual([]);
});

const LONG = Array.from({ length: 60 }, (_, at) => `Paragraph ${at} of the answer.`).join('\n\n');

/** A question that waits stands outside any turn; the turn that answers it takes its place, and is much taller. */
async function asked(name: string) {
  const agent = new EventWriter(it.server, name);
  const sessionId = `${name}-session`;
  const earlier = Array.from({ length: 30 }, (_, at) => userTurn(`r${at}`, `Question ${at}`, `Answer ${at}.`));
  await agent.write(sessionId, [...earlier.flat(), ...message('q', 'The question that waits', 'user')]);
  const page = await it.open(`/sessions/${sessionId}`);
  await live(page);
  await transcriptOf(page).getByText('The question that waits').waitFor();
  const interlude = { turn: 'user' as const, userMessageIds: ['q'] };
  const answer: AgUiEvent[] = [
    { type: 'RUN_STARTED', threadId: 's', runId: 'last', metadata: { interlude } },
    ...message('a', `${LONG}\n\nThe last word.`),
    { type: 'RUN_FINISHED', threadId: 's', runId: 'last', metadata: { interlude } },
  ];
  return { page, write: () => agent.write(sessionId, answer) };
}

const distanceFromEnd = (page: Page) =>
  transcriptOf(page).evaluate((log) => log.scrollHeight - log.scrollTop - log.clientHeight);

test('a reader at the end stays there when a taller turn takes the place of the last one', async () => {
  const { page, write } = await asked('follower');
  await expect.poll(() => distanceFromEnd(page)).toBeLessThanOrEqual(1);
  await write();
  await page.locator('[data-turn="last"]').waitFor();
  const last = transcriptOf(page).getByText('The last word.');
  await expect
    .poll(() => last.isVisible().then(async (shown) => shown && (await distanceFromEnd(page))))
    .toBeLessThanOrEqual(1);
  await expect.poll(() => last.evaluate((words) => words.getBoundingClientRect().bottom <= innerHeight)).toBe(true);
  await page.close();
});

test('a reader further up is left where they read, and told that there is more', async () => {
  const { page, write } = await asked('reader');
  await transcriptOf(page).hover();
  await page.mouse.wheel(0, -900);
  await expect.poll(() => distanceFromEnd(page)).toBeGreaterThan(400);
  const place = () => transcriptOf(page).evaluate((log) => log.scrollTop);
  const before = await place();
  await write();
  await page.getByRole('button', { name: /new|latest/i }).waitFor();
  expect(Math.abs((await place()) - before)).toBeLessThanOrEqual(2);
  await page.close();
});

test('a reader at the end stays there when what stands below takes height from the transcript, and gives it back', async () => {
  const { page } = await asked('writer');
  await expect.poll(() => distanceFromEnd(page)).toBeLessThanOrEqual(1);
  const height = () => transcriptOf(page).evaluate((log) => log.clientHeight);
  const before = await height();
  await page.locator('textarea').fill('One line\n'.repeat(8));
  await expect.poll(height).toBeLessThan(before - 40);
  await expect.poll(() => distanceFromEnd(page)).toBeLessThanOrEqual(1);
  await page.locator('textarea').fill('');
  await expect.poll(height).toBe(before);
  await expect.poll(() => distanceFromEnd(page)).toBeLessThanOrEqual(1);
  await page.close();
});

describe('when the oldest turns are removed', () => {
  /** Sixty turns, of which the first are older than the others, and a reader who has loaded all of them. */
  async function readBack(name: string, oldCount: number) {
    const agent = new EventWriter(it.server, name);
    const turns = Array.from({ length: 60 }, (_, at) => userTurn(`r${at}`, `Question ${at}`, `Answer ${at}.`));
    await agent.write(name, turns.slice(0, oldCount).flat());
    const isOld = Date.now() + 1;
    await expect.poll(() => Date.now()).toBeGreaterThan(isOld);
    await agent.write(name, turns.slice(oldCount).flat());
    const page = await it.open(`/sessions/${name}`);
    await live(page);
    const top = transcriptOf(page).getByRole('paragraph').first();
    const atTop = async () => {
      await transcriptOf(page).focus();
      await page.keyboard.press('Home');
      return top.textContent();
    };
    await expect.poll(atTop).toBe('Beginning of the session');
    const goTo = async (turnId: string) => {
      await page.evaluate((id) => {
        location.hash = `turn-${id}`;
      }, turnId);
      await expect.poll(() => isFocused(page.locator(`[id="turn-${turnId}"]`))).toBe(true);
    };
    return { page, top, atTop, goTo, remove: () => removeTurnsBefore(it.server, isOld) };
  }

  test('what is left stays where the reader has it, and above it stands how many are gone, live and reloaded', async () => {
    const { page, top, atTop, goTo, remove } = await readBack('reads', 20);
    await goTo('r40');
    const before = await turnTop(page, 'r40');
    await remove();
    await expect.poll(() => top.textContent()).toMatch(/^20 older turns were removed on or before \d+ \w+ \d{4}$/);
    expect(Math.abs(Number(await turnTop(page, 'r40')) - Number(before))).toBeLessThanOrEqual(2);

    const words = (await atTop()) ?? '';
    await expect.poll(() => firstVisibleTurn(page)).toBe('r20');
    await expect.poll(() => transcriptOf(page).evaluate((log) => log.scrollTop)).toBe(0);
    expect(await barriersInBothThemes(page)).toEqual([]);
    await page.goto(`${it.server.url}/sessions/reads`);
    await live(page);
    await expect.poll(atTop).toBe(words);
    await page.goto(`${it.server.url}/sessions/reads?again#turn-r3`);
    const notice = page.getByRole('status', { name: 'Link', exact: true });
    await notice.getByText('It may have been removed with the oldest turns.').waitFor();
    await page.close();
  });

  test('who reads one of them goes on at the oldest that is left, and keeps the keyboard', async () => {
    const { page, goTo, remove } = await readBack('reads-old', 40);
    await goTo('r10');
    await remove();
    await expect.poll(() => firstVisibleTurn(page)).toBe('r40');
    await expect.poll(() => transcriptOf(page).evaluate((log) => log.scrollTop)).toBe(0);
    expect(await isFocused(transcriptOf(page))).toBe(true);
    await page.close();
  });

  test('a transcript of which nothing is left says so, and what comes next', async () => {
    const { page, top, remove } = await readBack('reads-none', 60);
    await remove();
    const words = /^60 older turns were removed on or before .*\. What the agent does next appears here\.$/;
    await expect.poll(() => top.textContent()).toMatch(words);
    await page.reload();
    await live(page);
    await expect.poll(() => top.textContent()).toMatch(words);
    await page.close();
  });

  test('the tasks that go with them leave the list of tasks, and those that are left stay in it', async () => {
    const agent = new EventWriter(it.server, 'lists-tasks');
    const works = (run: string, task: string) => userTurn(run, `Do ${task}`, [taskStarted(task, `the ${task} task`)]);
    await agent.write('lists-tasks', [
      ...works('r0', 'ended'),
      taskEnded('ended', 'completed'),
      ...works('r1', 'long'),
    ]);
    const isOld = Date.now() + 1;
    await expect.poll(() => Date.now()).toBeGreaterThan(isOld);
    await agent.write('lists-tasks', [...works('r2', 'late'), taskEnded('late', 'completed')]);
    const page = await it.open('/sessions/lists-tasks');
    await page.setViewportSize({ width: 1680, height: 900 });
    await live(page);
    const words = (...names: string[]) => names.map((name) => expect.stringMatching(`the ${name} task`));
    const listed = () => page.getByRole('complementary', { name: 'Tasks' }).getByRole('link').allTextContents();
    await expect.poll(listed).toEqual(words('long', 'late', 'ended'));
    await removeTurnsBefore(it.server, isOld);
    const left = words('long', 'late');
    await expect.poll(listed).toEqual(left);
    await page.reload();
    await live(page);
    expect(await listed()).toEqual(left);
    await page.close();
  });
});
