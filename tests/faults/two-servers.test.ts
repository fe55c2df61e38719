import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { audit } from '../support/audit';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { sessionsOf } from '../support/numbered-work';
import { randomFrom } from '../support/random';
import { WorkRunner } from '../support/runner-process';
import { untilUnderLoad } from '../support/scene';
import { tempDir } from '../support/temp-dir';
import { Watcher } from '../support/watcher';

/** Nobody means to do it, but a second `npm start` in another terminal is easily typed. */
let first: LiveServer;
let second: LiveServer;
beforeAll(async () => {
  first = await startLiveServer();
  second = await startLiveServer({ dataDir: first.dataDir, token: first.token });
});
afterAll(async () => {
  await second.stop();
  await first.stop();
});

test('two servers on one data directory take from both sides, and either shows all of it', async () => {
  const folder = await tempDir();
  const agentIds = ['left', 'right'];
  const topics = agentIds.flatMap((id) => [`logs:${id}`, ...sessionsOf(id).map((session) => `session:${session}`)]);
  const watchers = [first, second].map((server) => new Watcher(server, ['fleet', ...topics]));
  const runners = [new WorkRunner('left', folder, first), new WorkRunner('right', folder, second)];
  onTestFinished(() => {
    for (const watcher of watchers) watcher.close();
    for (const runner of runners) runner.end();
  });
  for (const watcher of watchers) {
    for (let round = 0; round < 5; round += 1) {
      await untilUnderLoad({ server: first, random: randomFrom(1), runners, watcher });
    }
  }
  const steps = new Map<string, number>();
  await Promise.all(runners.map(async (runner) => steps.set(runner.agentId, await runner.finish())));
  expect([...steps.keys()].sort()).toEqual(agentIds);
  const databaseFile = join(first.dataDir, 'interlude.db');
  for (const [at, { url, token }] of [first, second].entries()) {
    await audit({ url, token, databaseFile, steps, watcher: watchers[at] as Watcher });
  }
});
