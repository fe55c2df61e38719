import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openDatabase } from '@/db/client';
import { EventWriter } from '../support/event-writer';
import { ensureLibsqlServer, startLibsqlServer } from '../support/libsql-server.mjs';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { seededRandom } from '../support/random';
import { pause, type Scene, startScenes, untilUnderLoad, verifyDelivery } from '../support/scene';
import { type UnreliableProxy, unreliableProxy } from '../support/test-proxies';
import { scaled } from '../support/timeouts';
import { expectWithin } from '../support/timing';
import { Watcher } from '../support/watcher';
import { turnOf, WireRunner } from '../support/wire-runner';

/**
 * Two dashboards on one libSQL server, each behind an unreliable 30 ms connection. Outboxes write to both, a watcher
 * reads from both, and both suffer every process and network failure.
 */
const suites = 'missing' in ensureLibsqlServer() ? describe.skip : describe;
const ONE_WAY_MS = 15;
/** Each round runs every step once in a random order. */
const ROUNDS = Array.from({ length: scaled(1, 30) }, (_, index) => index + 1);

suites('two dashboards on one libSQL server', () => {
  const random = seededRandom('libsql-server');
  let libsql: Awaited<ReturnType<typeof startLibsqlServer>>;
  let lines: UnreliableProxy[] = [];
  let servers: LiveServer[] = [];

  beforeAll(async () => {
    libsql = await startLibsqlServer();
    await (await openDatabase({ url: libsql.url, migrates: true })).close();
    lines = await Promise.all([1, 2].map(() => unreliableProxy(libsql.url, ONE_WAY_MS, random.next)));
    const token = 'one-token-for-both-0123456789';
    servers = await Promise.all(
      lines.map((line) => startLiveServer({ token, env: { INTERLUDE_DATABASE_URL: line.origin } })),
    );
  });
  afterAll(async () => {
    for (const server of servers) server.thaw();
    await Promise.all(servers.map((server) => server.stop()));
    await Promise.all(lines.map((line) => line.close()));
    await libsql?.stop();
  });

  test('both show a lost runner within 30 s, even if one was frozen meanwhile', async () => {
    const [frozen, awake] = servers as [LiveServer, LiveServer];
    const runners = new Map<string, WireRunner>();
    for (const [id, server] of [
      ['at-frozen', frozen],
      ['at-awake', awake],
    ] as const) {
      await new EventWriter(server, id).write(id, [turnOf('RUN_STARTED', `${id}-run`, [])]);
      runners.set(id, await WireRunner.connect(server, id));
    }
    const watchers = servers.map((server) => new Watcher(server, ['fleet']));
    onTestFinished(() => {
      for (const watcher of watchers) watcher.close();
    });
    const states = (state: string) => (watcher: Watcher) =>
      watcher.until(() => [...runners.keys()].every((id) => watcher.sessions.get(id)?.state === state));
    await Promise.all(watchers.map(states('working')));
    frozen.freeze();
    const goneAt = Date.now();
    for (const runner of runners.values()) runner.leave();
    await pause(random.between(2_000, 20_000));
    frozen.thaw();
    await Promise.all(watchers.map(states('unknown')));
    expectWithin(Date.now() - goneAt, 30_000);
    for (const { url, token } of servers) {
      const headers = { authorization: `Bearer ${token}` };
      for (const id of runners.keys()) {
        const { session } = await (await fetch(`${url}/api/v1/sessions/${id}`, { headers })).json();
        expect([id, session.state]).toEqual([id, 'unknown']);
      }
    }
  });

  test.each(ROUNDS)(
    'keep each record once when killed, frozen and disconnected under load, round %i',
    async (round) => {
      const scenes = await startScenes(`libsql-server ${round}`, servers, [`north-${round}`, `south-${round}`]);
      const kick = () => {
        for (const runner of scenes[0]?.runners ?? []) runner.kick();
      };
      const [first, second] = (random.next() < 0.5 ? servers : servers.toReversed()) as [LiveServer, LiveServer];
      const killed = async (...victims: LiveServer[]) => {
        await Promise.all(victims.map((server) => server.kill9()));
        await Promise.all(victims.map((server) => server.restart()));
      };
      const frozen = async (server: LiveServer, ms: number) => {
        server.freeze();
        await pause(ms);
        server.thaw();
      };
      const lossy = async (line: UnreliableProxy, badly: () => void, hasHit = () => true) => {
        badly();
        for (let cuts = 0; cuts < 4 || !hasHit(); cuts += 1) {
          await pause(random.between(100, 600));
          line.cut();
        }
        line.lose({ requests: 0, answers: 0 });
        line.breakWithin(null);
      };
      const [near, far] = lines as [UnreliableProxy, UnreliableProxy];
      const faults: Record<string, () => Promise<unknown>> = {
        'one is killed': () => killed(first),
        'the database is killed, and stays away': async () => {
          await libsql.kill();
          await pause(random.between(100, 2_000));
          await libsql.restart();
        },
        'all are killed': () => Promise.all([killed(first, second), libsql.restart()]),
        'one is frozen for longer than a transaction may last': () => frozen(first, 6_000),
        'one is frozen, and the other killed': () => Promise.all([frozen(first, 2_000), killed(second)]),
        'a line loses requests and answers': async () => {
          const before = near.lost;
          await lossy(
            near,
            () => near.lose({ requests: 0.1, answers: 0.1 }),
            () => near.lost > before,
          );
        },
        'a line breaks anywhere': () => lossy(far, () => far.breakWithin(20_000)),
      };
      const names = Object.keys(faults);
      while (names.length > 0) {
        const [name] = names.splice(random.between(0, names.length - 1), 1);
        await underLoad(scenes);
        await pause(random.between(0, 150));
        const since = Date.now();
        await faults[name as string]?.();
        process.stdout.write(`${name}: ${Date.now() - since} ms\n`);
        kick();
      }
      await underLoad(scenes);
      await verifyDelivery(...scenes);
    },
  );
});

async function underLoad(scenes: Scene[]): Promise<void> {
  await Promise.all(scenes.map(untilUnderLoad));
}
