import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { play, readRecording } from '@interlude/runner/cli/recording';
import { Outbox } from '@interlude/runner/outbox/outbox';
import { type CliRun, startCli } from './cli';
import type { LiveServer } from './live-server';

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
