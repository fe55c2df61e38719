import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createClient } from '@libsql/client';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { EventWriter } from '../support/event-writer';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { turnOf, WireRunner } from '../support/wire-runner';

let server: LiveServer;
beforeAll(async () => {
  server = await startLiveServer();
});
afterAll(() => server.stop());

test('a runner that went is missed by a server that was killed since, though nobody asks it for anything', async () => {
  await new EventWriter(server, 'a').write('s', [turnOf('RUN_STARTED', 'r', [])]);
  const runner = await WireRunner.connect(server, 'a');
  runner.leave();
  await server.kill9();
  await server.restart();
  // not through the server, which would wake at being asked
  const client = createClient({ url: pathToFileURL(join(server.dataDir, 'interlude.db')).href });
  const state = async () => (await client.execute("SELECT state FROM sessions WHERE id = 's'")).rows[0]?.state;
  expect(await state()).toBe('working');
  await vi.waitFor(async () => expect(await state()).toBe('unknown'), { interval: 200 });
  client.close();
});
