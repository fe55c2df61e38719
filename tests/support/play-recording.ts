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

/** Starts `interlude replay` as a process. */
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
 * Sends a recording without pauses through the adapter and an outbox, in this process. Resolves when the server has
 * acknowledged everything. @returns the session id; default: the recording's name
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

/** All SDK and demo recordings, by path in tests/fixtures/recordings. */
export const RECORDINGS = ['', 'demo/'].flatMap((folder) =>
  readdirSync(new URL(`../fixtures/recordings/${folder}`, import.meta.url))
    .filter((file) => file.endsWith('.jsonl'))
    .map((file) => `${folder}${file.replace(/\.jsonl$/, '')}`),
);

/** Recordings played by `npm test`: tasks that end together, and an interrupted turn. */
export const FEW_RECORDINGS = ['demo/triple', 'demo/interrupted'];

/** A window tall enough to render a whole recording. */
export const HIGH = { width: 1280, height: 5_000 };

/**
 * Plays a recording while a tab shows its session. Expects the tab to equal one that loads the session afterwards.
 *
 * @param watched a tab of the size HIGH
 */
export async function expectLiveIsReloaded(site: Visit, watched: Page, recording: string): Promise<void> {
  const session = `reloaded-${recording.replaceAll('/', '-')}`;
  await new EventWriter(site.server, `agent-${session}`).arrive(session);
  // a background tab renders once a second
  await watched.bringToFront();
  await watched.locator(`nav a[href="/sessions/${session}"]`).click();
  await watched.waitForURL(`**/sessions/${session}`);
  await transcriptOf(watched).waitFor();
  await playRecording(site.server, recording, session);
  const stored = await site.read<TranscriptPage>(`/sessions/${session}/transcript?limit=200`);
  expect(stored.hasMore).toBe(false);
  await expect.poll(() => shownTurns(watched)).toHaveLength(stored.turns.length);
  const reloaded = await site.context.newPage();
  await reloaded.setViewportSize(HIGH);
  await reloaded.goto(`${site.server.url}/sessions/${session}`);
  await expect.poll(() => shownTurns(reloaded)).toHaveLength(stored.turns.length);
  // pending replies arrive shortly after the page in both tabs
  await expect.poll(() => differing(watched, reloaded)).toEqual([]);
  await reloaded.close();
}

/** Turns that differ between two pages, in both versions. */
async function differing(one: Page, other: Page): Promise<unknown[]> {
  const [ours, theirs] = [await shownTurns(one), await shownTurns(other)];
  const pairs = ours.map((turn, index) => [turn, theirs[index]]);
  return pairs.filter(([turn, same]) => JSON.stringify(turn) !== JSON.stringify(same));
}
