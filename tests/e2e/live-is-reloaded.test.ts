import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TranscriptPage } from '@/lib/protocol/read-models';
import { EventWriter } from '../support/event-writer';
import { playRecording } from '../support/play-recording';
import { live, shownTurns, transcriptOf } from '../support/transcript-page';
import { userTurn } from '../support/turn-events';
import { type Visit, visit } from '../support/visit';

const recordings = ['', 'demo/'].flatMap((folder) =>
  readdirSync(new URL(`../fixtures/recordings/${folder}`, import.meta.url))
    .filter((file) => file.endsWith('.jsonl'))
    .map((file) => `${folder}${file.replace(/\.jsonl$/, '')}`),
);
/** As many replays at once as keep two cores busy. */
const AT_ONCE = 3;

let it: Visit;
beforeAll(async () => {
  // high enough to lay out a whole recording at once
  it = await visit({ chromium: { viewport: { width: 1280, height: 5_000 } } });
});
afterAll(async () => {
  expect(it.complaints).toEqual([]);
  await it.close();
});

const groups = Array.from({ length: Math.ceil(recordings.length / AT_ONCE) }, (_, at) =>
  recordings.slice(at * AT_ONCE, (at + 1) * AT_ONCE),
);

test.each(groups.map((group) => [group.join(', '), group]))(
  'a page that watched ends with the text of one that was opened afterwards: %s',
  async (_, group) => {
    await Promise.all(group.map(watch));
  },
);

async function watch(recording: string): Promise<void> {
  const session = recording.replaceAll('/', '-');
  const agent = new EventWriter(it.server, `agent-${session}`);
  await agent.arrive(session);
  const page = await it.open(`/sessions/${session}`);
  await live(page);
  await playRecording(it.server, recording, session);
  // the last word: once it is shown, so is everything before it
  await agent.write(session, userTurn('last-word', 'Was that all?', `That was all of ${session}`));
  await transcriptOf(page).getByText(`That was all of ${session}`).waitFor();
  const stored = await it.read<TranscriptPage>(`/sessions/${session}/transcript?limit=200`);
  expect(stored.hasMore).toBe(false);
  const watched = await shownTurns(page);
  expect(watched).toHaveLength(stored.turns.length);
  await page.reload();
  await live(page);
  await expect.poll(() => shownTurns(page)).toEqual(watched);
  await page.close();
}
