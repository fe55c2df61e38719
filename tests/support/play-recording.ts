import { readdirSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TranscriptPage } from '@interlude/protocol/read-models';
import { play, readRecording } from '@interlude/runner/cli/recording';
import { Outbox } from '@interlude/runner/outbox/outbox';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { type CliRun, startCli } from './cli';
import { EventWriter } from './event-writer';
import type { LiveServer } from './live-server';
import { shownTurns, transcriptOf } from './transcript-page';
import type { Visit } from './visit';

/** A server on this machine. */
type LocalServer = Pick<LiveServer, 'url' | 'token' | 'dataDir'>;

const fileOf = (recording: string) =>
  fileURLToPath(new URL(`../fixtures/recordings/${recording}.jsonl`, import.meta.url));

/** A recording on its way to a server, in a process of its own, as `interlude replay` sends it. */
export function startReplay(
  server: LocalServer,
  recording: string,
  { session, agent, speed }: { session: string; agent: string; speed: number },
): CliRun {
  const args = ['--session', session, '--agent', agent, '--speed', String(speed)];
  return startCli(['replay', fileOf(recording), ...args], {
    INTERLUDE_DATA_DIR: server.dataDir,
    INTERLUDE_TOKEN: server.token,
    INTERLUDE_URL: server.url,
  });
}

/**
 * Sends a recording without any wait through the adapter and an outbox, in this process. Resolves when the server has
 * acknowledged all of it. @returns the session's id, after the recording's name unless given
 */
export async function playRecording(server: LocalServer, recording: string, session?: string): Promise<string> {
  const sessionId = session ?? recording.replaceAll('/', '-');
  const agentId = `agent-${sessionId}`;
  const outboxDir = join(server.dataDir, 'outboxes');
  await mkdir(outboxDir, { recursive: true });
  const outbox = await Outbox.open(join(outboxDir, `${sessionId}.db`), {
    producerId: `recording-${sessionId}`,
    agentId,
    endpoint: async () => ({ url: server.url, token: server.token }),
  });
  try {
    await play({
      recording: await readRecording(fileOf(recording)),
      sessionId,
      fromLine: 0,
      speed: Number.POSITIVE_INFINITY,
      signal: new AbortController().signal,
      emit: (events, line) =>
        outbox.enqueue(
          events.map((one) => ({ kind: 'event', agentId, ...one })),
          { name: 'line', value: String(line) },
        ),
    });
    const { waiting, trouble } = await outbox.idle();
    if (waiting > 0) throw new Error(`${recording} was not acknowledged: ${trouble?.message}`);
  } finally {
    await outbox.stop();
  }
  return sessionId;
}

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
