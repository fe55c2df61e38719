import { expect, test } from 'vitest';
import { violationsInBothThemes } from '../support/accessibility';
import { EventWriter } from '../support/event-writer';
import { removeTurnsBefore } from '../support/server-data';
import { transcriptOf } from '../support/transcript-page';
import { taskEnded, taskStarted, userTurn } from '../support/turn-events';
import { perFile, visit } from '../support/visit';

const site = perFile(visit);

/** Resolves with a time after everything written so far and before everything written later. */
async function aMomentLater(): Promise<number> {
  const later = Date.now() + 1;
  await expect.poll(() => Date.now()).toBeGreaterThan(later);
  return later;
}

test('says that nothing is left of a transcript, live and reloaded, without axe violations', async () => {
  const agent = new EventWriter(site.server, 'follow-tail-none');
  await agent.write('follow-tail-none', userTurn('r0', 'Question', 'Answer.'));
  const page = await site.open('/sessions/follow-tail-none');
  await transcriptOf(page).getByText('Answer.').waitFor();
  const top = transcriptOf(page).getByRole('paragraph').first();
  await removeTurnsBefore(site.server, await aMomentLater());
  const words = /^1 older turn was removed on .*\. New turns appear here\.$/;
  await expect.poll(() => top.textContent()).toMatch(words);
  await page.reload();
  await expect.poll(() => top.textContent()).toMatch(words);
  expect(await violationsInBothThemes(page)).toEqual([]);
  await site.leave(page);
});

test('the task list drops tasks of removed turns and keeps running ones', async () => {
  const agent = new EventWriter(site.server, 'follow-tail-tasks');
  const session = 'follow-tail-tasks';
  const works = (run: string, task: string) => userTurn(run, `Do ${task}`, [taskStarted(task, `the ${task} task`)]);
  await agent.write(session, [...works('r0', 'ended'), taskEnded('ended', 'completed'), ...works('r1', 'long')]);
  const isOld = await aMomentLater();
  await agent.write(session, [...works('r2', 'late'), taskEnded('late', 'completed')]);
  const page = await site.load(`/sessions/${session}`);
  await page.setViewportSize({ width: 1680, height: 900 });
  const words = (...names: string[]) => names.map((name) => expect.stringMatching(`the ${name} task`));
  const listed = () => page.getByRole('complementary', { name: 'Tasks' }).getByRole('link').allTextContents();
  await expect.poll(listed).toEqual(words('long', 'late', 'ended'));
  await removeTurnsBefore(site.server, isOld);
  await expect.poll(listed).toEqual(words('long', 'late'));
  await page.reload();
  await expect.poll(listed).toEqual(words('long', 'late'));
  await site.leave(page);
});
