import { afterAll, beforeAll, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { live, shownTurns } from '../support/transcript-page';
import { message, userTurn } from '../support/turn-events';
import { type OwnVisit, visitOwn } from '../support/visit';

let it: OwnVisit;
beforeAll(async () => {
  // high enough that older turns are asked for at once
  it = await visitOwn({ chromium: { viewport: { width: 1024, height: 6_000 } } });
});
afterAll(async () => {
  expect(it.complaints).toEqual([]);
  await it.close();
});

test('a message that is claimed while the page that has it is on its way is shown once, in the turn that claims it', async () => {
  const agent = new EventWriter(it.server, 'agent');
  const queued = message('u1', 'please deploy', 'user');
  const turns = Array.from({ length: 40 }, (_, at) => userTurn(`r${at}`, `Question ${at}`, `Answer ${at}`));
  await agent.write('s', [...queued, ...turns.flat()]);

  let letGo = () => {};
  const isHeld = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  let isRead = () => {};
  const wasRead = new Promise<void>((resolve) => {
    isRead = resolve;
  });
  await it.context.route('**/api/v1/sessions/s/transcript?*before=*', async (route) => {
    const answer = await route.fetch();
    isRead();
    await isHeld;
    await route.fulfill({ response: answer });
  });
  const page = await it.open('/sessions/s');
  await live(page);
  await wasRead;
  const interlude = { turn: 'user' as const, userMessageIds: ['u1'] };
  await agent.write('s', [{ type: 'RUN_STARTED', threadId: 's', runId: 'last', metadata: { interlude } }]);
  await page.locator('[data-turn="last"]').waitFor();
  letGo();
  await page.getByText('Beginning of the session').waitFor();

  const holding = async () => (await shownTurns(page)).filter(({ text }) => text.includes('please deploy'));
  await expect.poll(holding).toHaveLength(1);
  expect(await page.locator('[data-turn="last"]').textContent()).toContain('please deploy');
});
