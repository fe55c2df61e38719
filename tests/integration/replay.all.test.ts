import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { EventRecord } from '@interlude/protocol/envelope';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runCli, startCli } from '../support/cli';
import { callCli } from '../support/cli-in-process';
import { FaultServer } from '../support/fault-server';
import { tempDir } from '../support/temp-dir';

const recording = fileURLToPath(new URL('../../lib/runner/cli/demo/recordings/test-run.jsonl', import.meta.url));

let server: FaultServer;
let env: Record<string, string>;
beforeEach(async () => {
  server = await FaultServer.start();
  env = { INTERLUDE_DATA_DIR: join(await tempDir(), 'data') };
});
afterEach(() => server.close());

const atSpeed = (speed: string, ...args: string[]) => [
  'replay',
  recording,
  '--url',
  server.url,
  '--speed',
  speed,
  ...args,
];
const eventsOf = (isWanted: (record: EventRecord) => boolean) =>
  server.ledger.records.filter((record): record is EventRecord => record.kind === 'event' && isWanted(record));

describe('replay', () => {
  test('creates two sessions when started twice at once', async () => {
    const ends = await Promise.all([runCli(atSpeed('max'), env), runCli(atSpeed('max'), env)]);
    expect(ends.map((end) => end.exitCode)).toEqual([0, 0]);
    const sessions = [...new Set(eventsOf(() => true).map(({ sessionId }) => sessionId))];
    const counts = sessions.map((id) => eventsOf(({ sessionId }) => sessionId === id).length);
    expect(counts).toEqual([counts[0], counts[0]]);
  });

  test('resumes after each of five kills', async () => {
    const contentOf = (agentId: string) =>
      eventsOf((record) => record.agentId === agentId).map(({ event }) =>
        JSON.stringify({ ...event, timestamp: undefined }),
      );
    await callCli(atSpeed('max', '--session', 'whole', '--agent', 'one'), env);
    const args = atSpeed('20', '--session', 'whole', '--agent', 'other');
    for (let kills = 0; ; ) {
      const arrived = server.requests.length;
      const run = startCli(args, env);
      if (kills < 5) {
        void server.until(() => server.requests.length > arrived + 3 * kills).then(() => run.process.kill('SIGKILL'));
      }
      const end = await run.ended;
      if (end.exitCode === 0) break;
      expect(end.exitCode).toBeNull();
      kills += 1;
    }
    expect(contentOf('other')).toEqual(contentOf('one'));
  });
});
