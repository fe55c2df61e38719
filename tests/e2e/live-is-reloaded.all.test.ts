import type { TranscriptPage } from '@interlude/protocol/read-models';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { expectLiveIsReloaded, FEW_RECORDINGS, HIGH, RECORDINGS, startReplay } from '../support/play-recording';
import { assistantTexts } from '../support/recordings';
import { badgeOf, live, shownTurns, textsOf, transcriptWords, wordsIn } from '../support/transcript-page';
import { CUT_REQUESTS, type OwnVisit, visitOwn } from '../support/visit';

let site: OwnVisit;
let watched: Page;
beforeAll(async () => {
  // A low pixel ratio, because drawing tall windows takes most of the time.
  site = await visitOwn({ chromium: { viewport: HIGH, deviceScaleFactor: 0.2 } });
  watched = await site.open('/');
});
afterAll(async () => {
  await site.close();
  // The browser logs the requests that fail while the server is down.
  expect(site.complaints.filter((one) => !CUT_REQUESTS.test(one))).toEqual([]);
});

test.each(RECORDINGS.filter((name) => !FEW_RECORDINGS.includes(name)))(
  'a transcript watched live equals the one loaded afterwards: %s',
  (recording) => expectLiveIsReloaded(site, watched, recording),
);

test('a page reloaded during a replayed message ends with the complete text, once', async () => {
  const recording = 'demo/interrupted';
  const text = assistantTexts(recording).reduce((longest, one) => (one.length > longest.length ? one : longest));
  await new EventWriter(site.server, 'cut-agent').arrive('cut-mid');
  const page = await site.open('/sessions/cut-mid');
  await page.getByText(/^No turns yet/).waitFor();
  const replay = startReplay(site.server, recording, { session: 'cut-mid', agent: 'cut-agent', speed: 2 });
  try {
    const shown = () => transcriptWords(page);
    const [start, end] = [wordsIn(text).slice(0, 4).join(' '), wordsIn(text).slice(-4).join(' ')];
    const stored = async () => textsOf(await site.read<TranscriptPage>('/sessions/cut-mid/transcript?limit=200'));
    // The replay stops in the middle, however long the page takes.
    await expect.poll(async () => (await stored()).flatMap(wordsIn).join(' '), { interval: 20 }).toContain(start);
    replay.process.kill('SIGSTOP');
    await expect.poll(shown).toContain(start);
    expect(await shown()).not.toContain(end);
    await page.reload();
    await expect.poll(shown, { interval: 20 }).toContain(start);
    expect(await shown()).not.toContain(end);
    replay.process.kill('SIGCONT');
    await expect.poll(shown).toContain(end);
    expect((await shown()).split(wordsIn(text).join(' ')).length).toBe(2);
    expect((await shown()).split(start).length).toBe(2);
    expect((await stored()).filter((one) => one === text)).toHaveLength(1);
  } finally {
    replay.process.kill('SIGCONT');
    replay.process.kill('SIGINT');
    await replay.ended;
  }
  await page.close();
});

test('an open page shows everything written while its server was killed and restarted', async () => {
  const recording = 'demo/failure';
  await new EventWriter(site.server, 'survivor').arrive('power-cut');
  const page = await site.open('/sessions/power-cut');
  await live(page);
  const replay = startReplay(site.server, recording, { session: 'power-cut', agent: 'survivor', speed: 3 });
  const texts = assistantTexts(recording);
  await expect.poll(() => transcriptWords(page)).toContain(wordsIn(texts[0] ?? '').join(' '));
  await site.server.kill9();
  await badgeOf(page).getByText('Reconnecting').waitFor();
  const before = await shownTurns(page);
  expect(before.length).toBeGreaterThan(0);
  await site.server.restart();
  await live(page);
  const { exitCode, stderr } = await replay.ended;
  expect(exitCode, stderr).toBe(0);

  const stored = await site.read<TranscriptPage>('/sessions/power-cut/transcript?limit=200');
  expect(textsOf(stored)).toEqual(texts);
  await expect.poll(() => shownTurns(page).then((turns) => turns.length)).toBe(stored.turns.length);
  const last = wordsIn(texts.at(-1) ?? '').join(' ');
  await expect.poll(() => transcriptWords(page)).toContain(last);
  const reloaded = await site.open('/sessions/power-cut');
  await live(reloaded);
  expect(await shownTurns(reloaded)).toHaveLength(stored.turns.length);
  // A new page shows plain text until its markdown is laid out.
  await expect.poll(() => shownTurns(reloaded)).toEqual(await shownTurns(page));
});
