import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TranscriptPage } from '@/lib/protocol/read-models';
import { EventWriter } from '../support/event-writer';
import { playRecording } from '../support/play-recording';
import { live, shownTurns } from '../support/transcript-page';
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
  await new EventWriter(it.server, `agent-${session}`).arrive(session);
  const watched = await it.open(`/sessions/${session}`);
  await live(watched);
  await playRecording(it.server, recording, session);
  const stored = await it.read<TranscriptPage>(`/sessions/${session}/transcript?limit=200`);
  expect(stored.hasMore).toBe(false);
  const reloaded = await it.open(`/sessions/${session}`);
  await live(reloaded);
  expect(await shownTurns(reloaded)).toHaveLength(stored.turns.length);
  await expect.poll(() => shownTurns(watched)).toEqual(await shownTurns(reloaded));
  await Promise.all([watched.close(), reloaded.close()]);
}
