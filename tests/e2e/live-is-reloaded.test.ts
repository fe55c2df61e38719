import { readdirSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TranscriptPage } from '@/lib/protocol/read-models';
import { EventWriter } from '../support/event-writer';
import { playRecording } from '../support/play-recording';
import { live, shownTurns, transcriptOf } from '../support/transcript-page';
import { type OwnVisit, visitOwn } from '../support/visit';

const recordings = ['', 'demo/'].flatMap((folder) =>
  readdirSync(new URL(`../fixtures/recordings/${folder}`, import.meta.url))
    .filter((file) => file.endsWith('.jsonl'))
    .map((file) => `${folder}${file.replace(/\.jsonl$/, '')}`),
);
let it: OwnVisit;
/** The tab that goes from session to session. */
let watched: Page;
beforeAll(async () => {
  // high enough to lay out a whole recording at once, and coarse, since nobody looks at the picture
  it = await visitOwn({ chromium: { viewport: { width: 1280, height: 5_000 }, deviceScaleFactor: 0.2 } });
  watched = await it.open('/');
});
afterAll(async () => {
  await it.close();
  expect(it.complaints).toEqual([]);
});

test.each(recordings)(
  'a page that watched ends with the text of one that was opened afterwards: %s',
  async (recording) => {
    const session = recording.replaceAll('/', '-');
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
    const reloaded = await it.open(`/sessions/${session}`);
    await live(reloaded);
    expect(await shownTurns(reloaded)).toHaveLength(stored.turns.length);
    // What is owed comes a moment after the page, to either of them.
    await expect.poll(() => differing(watched, reloaded)).toEqual([]);
    await reloaded.close();
  },
);

/** The turns that one page shows otherwise than another, as each has them. */
async function differing(one: Page, other: Page): Promise<unknown[]> {
  const [ours, theirs] = [await shownTurns(one), await shownTurns(other)];
  const pairs = ours.map((turn, at) => [turn, theirs[at]]);
  return pairs.filter(([turn, same]) => JSON.stringify(turn) !== JSON.stringify(same));
}
