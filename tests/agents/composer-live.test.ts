import { type Context, say, turn } from '@interlude/runner/cli/demo/scripted-model.mjs';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { claudeStage, quickStep, releaseTask, startPoll } from '../support/claude-stage';
import { assistantText, messages, taskEnds } from '../support/operator';
import { badgeOf, live, shownTurns, transcriptOf } from '../support/transcript-page';
import { CUT_REQUESTS, type OwnVisit, visitOwn } from '../support/visit';

/** A browser, the real runner and the real Claude Code. Only the model is scripted. */

let site: OwnVisit;
beforeAll(async () => {
  site = await visitOwn();
});
afterAll(() => site.close());

const exitOf = ({ notices }: Context) => /exit code (\d+)/.exec(notices[0]?.summary ?? '')?.[1];

test('a page delivers messages and shows between-run turns when the server is killed in between', async () => {
  let wake = () => {};
  const woken = new Promise<void>((resolve) => {
    wake = resolve;
  });
  const stage = await claudeStage(site.server, {
    turns: [
      startPoll(say('Starting.')),
      turn(/"Poll" failed/, (context) => {
        wake();
        return quickStep([say(`Poll exited with code ${exitOf(context)}`)]);
      }),
      turn(/NEXT/, quickStep([say('Reply to the next.')])),
    ],
  });
  const { operator, agentId, sessionId } = stage;
  await stage.runner();
  const page = await site.open(`/sessions/${sessionId}`);
  await live(page);
  const composer = page.getByRole('textbox', { name: `Message to “${agentId}”` });
  const ways = await watchDelivery(page);

  await composer.fill('START');
  await composer.press('Enter');
  await page.getByRole('group', { name: /^Task Poll: running/ }).waitFor();
  await transcriptOf(page).getByText('Started the poll.', { exact: true }).waitFor();
  await transcriptOf(page).getByText('Seen', { exact: true }).waitFor();
  expect(STEPS.filter((step) => ways.includes(step))).toEqual([...ways]);
  expect(ways.at(-1)).toBe('Seen');
  await operator.finished(1);

  await site.server.kill9();
  await badgeOf(page).getByText('Reconnecting').waitFor();
  await releaseTask(stage.cwd);
  await woken;
  await site.server.restart();
  await live(page);
  const report = page.getByRole('article', { name: /^Between-run turn: woken by Poll \(failed, exit 3\)/ });
  await report.getByText('Poll exited with code 3', { exact: true }).waitFor();
  await page.getByRole('group', { name: /^Task Poll: failed/ }).waitFor();

  await composer.fill('NEXT');
  await composer.press('Enter');
  await transcriptOf(page).getByText('Reply to the next.', { exact: true }).waitFor();

  const turns = await operator.finished(3);
  expect(turns.map(({ kind, state }) => `${kind} ${state}`)).toEqual([
    ...['user finished', 'between-run finished', 'user finished'],
  ]);
  expect(turns.map((one) => messages([one], 'user').map(({ text }) => text))).toEqual([['START'], [], ['NEXT']]);
  expect(turns.map(assistantText)).toEqual([
    'Starting.\nStarted the poll.',
    'Poll exited with code 3',
    'Reply to the next.',
  ]);
  const [task, ...more] = await operator.tasks();
  expect(more).toEqual([]);
  expect(task).toMatchObject({ status: 'failed', exitCode: 3, answeredInTurnId: turns[1]?.id });
  expect(taskEnds(turns).map(({ id }) => id)).toEqual([task?.id]);
  expect(await operator.session()).toMatchObject({ lostCount: 0, quarantinedCount: 0, runningTaskCount: 0 });
  expect(stage.problems()).toEqual([]);

  // The page that stayed open equals a fresh one.
  const fresh = await site.open(`/sessions/${sessionId}`);
  await live(fresh);
  await expect.poll(() => shownTurns(fresh).then((shown) => shown.length)).toBe((await operator.turns()).length);
  await expect.poll(() => shownTurns(fresh)).toEqual(await shownTurns(page));
  for (const text of [
    'START',
    'Starting.',
    'Started the poll.',
    'Poll exited with code 3',
    'NEXT',
    'Reply to the next.',
  ]) {
    expect(await transcriptOf(page).getByText(text, { exact: true }).count(), text).toBe(1);
  }
  expect(site.complaints.filter((one) => !CUT_REQUESTS.test(one))).toEqual([]);
});

const STEPS = ['Sending…', 'Queued', 'Delivered', 'Seen'];

/** Collects the delivery labels that the page shows for a message. */
async function watchDelivery(page: Page): Promise<string[]> {
  const ways: string[] = [];
  await page.exposeFunction('noteWay', (text: string) => {
    if (STEPS.includes(text) && ways.at(-1) !== text) ways.push(text);
  });
  await transcriptOf(page).evaluate((log) => {
    const { noteWay } = window as unknown as { noteWay: (text: string) => void };
    new MutationObserver(() => {
      for (const line of log.querySelectorAll('p')) noteWay(line.textContent ?? '');
    }).observe(log, { subtree: true, childList: true, characterData: true });
  });
  return ways;
}
