import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { expectWithin } from '../support/pace';
import { judge, setUp, untilUnderLoad } from '../support/scene';

/** A server that is told to stop under load: it goes at once, says so to whoever watches, and forgets nothing. */
let server: LiveServer;
beforeAll(async () => {
  server = await startLiveServer();
});
afterAll(() => server.stop());

test.each([
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const)('%s ends a server under load within five seconds, each stream with its bye', async (signal, exitCode) => {
  const agents = ['a', 'b'].map((name) => `${signal.toLowerCase()}-${name}`);
  const scene = await setUp(signal, server, agents);
  await untilUnderLoad(scene);
  const end = await server.signal(signal);
  expect(end.exitCode).toBe(exitCode);
  expectWithin(end.afterMs, 5_000);
  await scene.watcher.until(() => scene.watcher.byes.length > 0);
  expect(scene.watcher.byes).toEqual(['shutdown']);
  // all of it is in the one file: a copy of that is a copy of everything
  const log = await stat(join(server.dataDir, 'interlude.db-wal')).catch(() => null);
  expect(log?.size ?? 0).toBe(0);
  await server.restart();
  for (const runner of scene.runners) runner.kick();
  await judge(scene);
});
