import { expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { breakableProxy } from '../support/test-proxies';
import {
  expectFrozen,
  expectMoving,
  expectStill,
  expectUnsent,
  live,
  reconnecting,
  transcriptOf,
  visibleText,
} from '../support/transcript-page';
import { movingTurn } from '../support/turn-events';
import { CUT_REQUESTS, perFile, visitOwn } from '../support/visit';
import { turnOf } from '../support/wire-runner';

const site = perFile(
  () =>
    visitOwn({
      chromium: { reducedMotion: 'no-preference' },
      proxy: ({ url }) => breakableProxy(url),
    }),
  CUT_REQUESTS,
);

test('every page stops its clocks during an outage, keeps unsent input, and resumes without a gap', async () => {
  const agent = new EventWriter(site.server, 'cut');
  await agent.staysInTouch();
  await agent.write('cut-session', movingTurn());
  const session = await site.load('/sessions/cut-session');
  await session.setViewportSize({ width: 1680, height: 900 });
  const pages = [session, await site.load('/'), await site.load('/agents/cut')];
  for (const page of pages) await live(page);
  await expectMoving(session, { agent, sessionId: 'cut-session' }, 'breathe', 'turn', 'caret');

  site.proxy.sever();
  await Promise.all(pages.map(reconnecting));
  await Promise.all(pages.map(expectFrozen));
  await expectUnsent(session, 'Are you there?');
  await agent.write('cut-session', [{ type: 'TEXT_MESSAGE_CONTENT', messageId: 'a2', delta: ', still' }]);

  site.proxy.mend();
  for (const page of pages) await live(page);
  await transcriptOf(session).getByText('Running them now, still').waitFor();
  await transcriptOf(session).getByText('Queued').waitFor();
  expect(await transcriptOf(session).getByText('Are you there?').count()).toBe(1);
  await expectMoving(session, { agent, sessionId: 'cut-session' }, 'breathe', 'turn', 'caret');
  const now = await visibleText(session);
  await expect.poll(() => visibleText(session)).not.toBe(now);
  for (const page of pages) await page.close();
});

test('a page without network says so though the shared connection works, and is live again afterwards', async () => {
  const agent = new EventWriter(site.server, 'unplugged');
  await agent.staysInTouch();
  await agent.write('unplugged-session', [turnOf('RUN_STARTED', 'open', [])]);
  const page = await site.load('/sessions/unplugged-session');
  await live(page);
  await site.context.setOffline(true);
  await reconnecting(page);
  await expectStill(page);
  await site.context.setOffline(false);
  await live(page);
  await expectMoving(page, { agent, sessionId: 'unplugged-session' }, 'breathe');
  await page.close();
});
