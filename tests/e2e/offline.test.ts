import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { badgeOf, live, transcriptOf } from '../support/transcript-page';
import { message, taskStarted, userTurn } from '../support/turn-events';
import { type Visit, visit } from '../support/visit';

/** A server that is silent: it takes connections, and nothing comes. */

let it: Visit;
beforeAll(async () => {
  it = await visit();
});
afterAll(async () => {
  await it.close();
  expect(it.complaints).toEqual([]);
});

/** What moves for as long as something goes on. */
function endlessAnimations(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    document
      .getAnimations()
      .filter((one) => one.playState === 'running' && one.effect?.getComputedTiming().iterations === Infinity)
      .map((one) => (one as CSSAnimation).animationName),
  );
}

/** All that is read on the page, but for the badge. */
function words(page: Page): Promise<string> {
  return page.evaluate(() => {
    const badges = [...document.querySelectorAll<HTMLElement>('[role="status"][aria-label="Connection"]')];
    // biome-ignore lint/performance/useDomNodeTextContent: what is shown counts
    return badges.reduce((text, badge) => text.replace(badge.innerText, ''), document.body.innerText);
  });
}

async function standsStill(page: Page): Promise<void> {
  expect(await endlessAnimations(page)).toEqual([]);
  const age = badgeOf(page).getByText(/^\d+ s ago$/);
  expect(await badgeOf(page).textContent()).toMatch(/as of \d\d:\d\d:\d\d, \d+ s ago$/);
  const [before, since] = [await words(page), await age.textContent()];
  await expect.poll(() => age.textContent()).not.toBe(since);
  expect(await words(page)).toBe(before);
}

test('while the server is silent every tab says so within 25 s and stands still, and goes on by itself after', async () => {
  const agent = new EventWriter(it.server, 'frozen');
  await agent.write('frozen-session', [
    ...userTurn('first', 'Build it', [...message('a1', 'Building.'), taskStarted('t1', 'Watch the deploy')]),
    ...message('u2', 'And run the tests', 'user'),
    {
      type: 'RUN_STARTED',
      threadId: 's',
      runId: 'second',
      metadata: { interlude: { turn: 'user', userMessageIds: ['u2'] } },
    },
    { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'Bash' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{"command":"npm test"}' },
    { type: 'TOOL_CALL_END', toolCallId: 'c1' },
    { type: 'TEXT_MESSAGE_START', messageId: 'a2', role: 'assistant' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'a2', delta: 'Running them now' },
  ]);
  const session = await it.open('/sessions/frozen-session');
  await session.setViewportSize({ width: 1680, height: 900 });
  const others = await Promise.all(
    ['/', '/agents', '/agents/frozen', '/agents/frozen/logs'].map((path) => it.open(path)),
  );
  const pages = [session, ...others];
  for (const page of pages) await live(page);
  expect(new Set(await endlessAnimations(session))).toEqual(new Set(['breathe', 'turn', 'caret']));

  process.kill(it.server.pid, 'SIGSTOP');
  try {
    await Promise.all(pages.map((page) => badgeOf(page).getByText('Reconnecting').waitFor({ timeout: 25_000 })));
    await Promise.all(pages.map(standsStill));

    const field = session.getByRole('textbox', { name: 'Message to frozen' });
    await field.fill('Are you there?');
    await field.press('Enter');
    await transcriptOf(session).getByText('Not sent yet, retrying').waitFor();
    await session.getByRole('form', { name: 'Composer' }).getByText('Offline: what you send waits here').waitFor();
    await session.getByRole('button', { name: 'Interrupt', exact: true }).click();
    await session.getByText('The server can’t be reached').first().waitFor();
  } finally {
    process.kill(it.server.pid, 'SIGCONT');
  }
  for (const page of pages) await live(page);
  expect(new Set(await endlessAnimations(session))).toEqual(new Set(['breathe', 'turn', 'caret']));
  const now = await words(session);
  await expect.poll(() => words(session)).not.toBe(now);
  await transcriptOf(session).getByText('Queued').waitFor();
  await agent.write('frozen-session', [{ type: 'TEXT_MESSAGE_CONTENT', messageId: 'a2', delta: ', still' }]);
  await transcriptOf(session).getByText('Running them now, still').waitFor();
  expect(await transcriptOf(session).getByText('Are you there?').count()).toBe(1);
}, 90_000);

test('a page whose own requests fail says so at once, whatever the tabs share, and is live again with the network', async () => {
  await new EventWriter(it.server, 'cut-off').write('cut-off-session', [
    { type: 'RUN_STARTED', threadId: 's', runId: 'r', metadata: { interlude: { turn: 'user', userMessageIds: [] } } },
  ]);
  const page = await it.open('/sessions/cut-off-session');
  await live(page);
  await it.context.setOffline(true);
  await badgeOf(page).getByText('Reconnecting').waitFor({ timeout: 5_000 });
  expect(await endlessAnimations(page)).toEqual([]);
  await it.context.setOffline(false);
  await live(page);
  expect(await endlessAnimations(page)).toContain('breathe');
  // The browser itself complains of the request that found no way.
  it.complaints.splice(0, Infinity, ...it.complaints.filter((one) => !one.includes('ERR_INTERNET_DISCONNECTED')));
});
