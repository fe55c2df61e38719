import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { expectLiveIsReloaded, FEW_RECORDINGS, HIGH } from '../support/play-recording';
import { transcriptOf } from '../support/transcript-page';
import { perFile, visit } from '../support/visit';
import { turnOf } from '../support/wire-runner';

const site = perFile(visit);

const part = (delta: string): AgUiEvent => ({ type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta });

let watched: Page;
beforeAll(async () => {
  watched = await site.open('/');
  await watched.setViewportSize(HIGH);
});

afterAll(async () => {
  await site.leave(watched);
});

test.each(FEW_RECORDINGS)('a transcript watched live equals the one loaded afterwards: %s', (recording) =>
  expectLiveIsReloaded(site, watched, recording),
);

test('a page reloaded during a message ends with the complete text, once', async () => {
  const agent = new EventWriter(site.server, 'cut-agent');
  await agent.write('cut-mid', [
    turnOf('RUN_STARTED', 'r1', []),
    { type: 'TEXT_MESSAGE_START', messageId: 'm', role: 'assistant' },
    part('It begins before '),
  ]);
  const page = await site.open('/sessions/cut-mid');
  const shown = async () => (await transcriptOf(page).locator('[id="message-m"]').allInnerTexts()).join('|').trim();
  await expect.poll(shown).toBe('It begins before');
  await agent.write('cut-mid', [part('the page is reloaded ')]);
  await expect.poll(shown).toBe('It begins before the page is reloaded');
  await page.reload();
  await expect.poll(shown).toBe('It begins before the page is reloaded');
  await agent.write('cut-mid', [part('and ends '), part('after that.')]);
  await expect.poll(shown).toBe('It begins before the page is reloaded and ends after that.');
  await agent.write('cut-mid', [{ type: 'TEXT_MESSAGE_END', messageId: 'm' }, turnOf('RUN_FINISHED', 'r1', [])]);
  await transcriptOf(page).getByText('and ends after that.').waitFor();
  expect(await shown()).toBe('It begins before the page is reloaded and ends after that.');
  await site.leave(page);
});
