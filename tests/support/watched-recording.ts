import { readdirSync } from 'node:fs';
import type { TranscriptPage } from '@interlude/protocol/read-models';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { EventWriter } from './event-writer';
import { playRecording } from './play-recording';
import { shownTurns, transcriptOf } from './transcript-page';
import type { Visit } from './visit';

/** All recordings of the SDK and of the demo, by their names below tests/fixtures/recordings. */
export const RECORDINGS = ['', 'demo/'].flatMap((folder) =>
  readdirSync(new URL(`../fixtures/recordings/${folder}`, import.meta.url))
    .filter((file) => file.endsWith('.jsonl'))
    .map((file) => `${folder}${file.replace(/\.jsonl$/, '')}`),
);

/** Background tasks that end together, and a turn that was interrupted: those that `npm test` plays. */
export const FEW_RECORDINGS = ['demo/triple', 'demo/interrupted'];

/** Lays out a whole recording at once. */
export const HIGH = { width: 1280, height: 5_000 };

/**
 * Plays a recording while a tab shows its session, and compares the tab with one that loads the session afterwards.
 *
 * @param watched in a window of the size HIGH
 */
export async function expectLiveIsReloaded(it: Visit, watched: Page, recording: string): Promise<void> {
  const session = `reloaded-${recording.replaceAll('/', '-')}`;
  await new EventWriter(it.server, `agent-${session}`).arrive(session);
  // a tab behind another draws once a second
  await watched.bringToFront();
  await watched.locator(`nav a[href="/sessions/${session}"]`).click();
  await watched.waitForURL(`**/sessions/${session}`);
  await transcriptOf(watched).waitFor();
  await playRecording(it.server, recording, session);
  const stored = await it.read<TranscriptPage>(`/sessions/${session}/transcript?limit=200`);
  expect(stored.hasMore).toBe(false);
  await expect.poll(() => shownTurns(watched)).toHaveLength(stored.turns.length);
  const reloaded = await it.context.newPage();
  await reloaded.setViewportSize(HIGH);
  await reloaded.goto(`${it.server.url}/sessions/${session}`);
  await expect.poll(() => shownTurns(reloaded)).toHaveLength(stored.turns.length);
  // pending replies come a moment after the page, to either tab
  await expect.poll(() => differing(watched, reloaded)).toEqual([]);
  await reloaded.close();
}

/** The turns that two pages show differently, each as both have it. */
async function differing(one: Page, other: Page): Promise<unknown[]> {
  const [ours, theirs] = [await shownTurns(one), await shownTurns(other)];
  const pairs = ours.map((turn, at) => [turn, theirs[at]]);
  return pairs.filter(([turn, same]) => JSON.stringify(turn) !== JSON.stringify(same));
}
