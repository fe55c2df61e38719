import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { press } from '../support/press';
import { type BreakableProxy, breakableProxy } from '../support/test-proxies';
import {
  endlessAnimations,
  expectFrozen,
  live,
  reconnecting,
  transcriptOf,
  visibleText,
} from '../support/transcript-page';
import { message, taskStarted, userTurn } from '../support/turn-events';
import { perFile, visitOwn } from '../support/visit';

/** The browser logs every request that the broken line fails. */
const FAILED =
  /ERR_(EMPTY_RESPONSE|CONNECTION_RESET|SOCKET_NOT_CONNECTED|INCOMPLETE_CHUNKED_ENCODING|INTERNET_DISCONNECTED)/;

let line: BreakableProxy;
const it = perFile(
  () =>
    visitOwn({
      chromium: { reducedMotion: 'no-preference' },
      proxy: async ({ url }) => {
        line = await breakableProxy(url);
        return line;
      },
    }),
  FAILED,
);

const openTurn = (userMessageIds: string[]): AgUiEvent => ({
  type: 'RUN_STARTED',
  threadId: 's',
  runId: 'open',
  metadata: { interlude: { turn: 'user', userMessageIds } },
});

test('every page stops its clocks during an outage, keeps unsent input, and resumes without a gap', async () => {
  const agent = new EventWriter(it.server, 'cut');
  await agent.write('cut-session', [
    ...userTurn('first', 'Build it', [...message('a1', 'Building.'), taskStarted('t1', 'Watch the deploy')]),
    ...message('u2', 'And run the tests', 'user'),
    openTurn(['u2']),
    { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'Bash' },
    { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{"command":"npm test"}' },
    { type: 'TOOL_CALL_END', toolCallId: 'c1' },
    { type: 'TEXT_MESSAGE_START', messageId: 'a2', role: 'assistant' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId: 'a2', delta: 'Running them now' },
  ]);
  const session = await it.load('/sessions/cut-session');
  await session.setViewportSize({ width: 1680, height: 900 });
  const pages = [session, await it.load('/'), await it.load('/agents/cut')];
  for (const page of pages) await live(page);
  expect(new Set(await endlessAnimations(session))).toEqual(new Set(['breathe', 'turn', 'caret']));

  line.sever();
  await Promise.all(pages.map(reconnecting));
  await Promise.all(pages.map(expectFrozen));
  const field = session.getByRole('textbox', { name: 'Message to “cut”' });
  await field.fill('Are you there?');
  await field.press('Enter');
  await transcriptOf(session).getByText('Not sent yet, retrying').waitFor();
  await session.getByRole('form', { name: 'Composer' }).getByText('Offline. Your messages will be sent').waitFor();
  await press(session.getByRole('button', { name: 'Interrupt', exact: true }));
  await session.getByText('The server can’t be reached').first().waitFor();
  await agent.write('cut-session', [{ type: 'TEXT_MESSAGE_CONTENT', messageId: 'a2', delta: ', still' }]);

  line.mend();
  for (const page of pages) await live(page);
  await transcriptOf(session).getByText('Running them now, still').waitFor();
  await transcriptOf(session).getByText('Queued').waitFor();
  expect(await transcriptOf(session).getByText('Are you there?').count()).toBe(1);
  expect(new Set(await endlessAnimations(session))).toEqual(new Set(['breathe', 'turn', 'caret']));
  const now = await visibleText(session);
  await expect.poll(() => visibleText(session)).not.toBe(now);
  for (const page of pages) await page.close();
});

test('a page without network says so though the shared connection works, and is live again afterwards', async () => {
  await new EventWriter(it.server, 'unplugged').write('unplugged-session', [openTurn([])]);
  const page = await it.load('/sessions/unplugged-session');
  await live(page);
  await it.context.setOffline(true);
  await reconnecting(page);
  expect(await endlessAnimations(page)).toEqual([]);
  await it.context.setOffline(false);
  await live(page);
  expect(await endlessAnimations(page)).toContain('breathe');
  await page.close();
});
