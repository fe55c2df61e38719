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

test('a restarted server detects a lost runner without any request', async () => {
  await new EventWriter(server, 'a').write('s', [turnOf('RUN_STARTED', 'r', [])]);
  const runner = await WireRunner.connect(server, 'a');
  runner.leave();
  await server.kill9();
  await server.restart();
  // read the file directly, because a request would wake the server
  const client = createClient({ url: pathToFileURL(join(server.dataDir, 'interlude.db')).href });
  const state = async () => (await client.execute("SELECT state FROM sessions WHERE id = 's'")).rows[0]?.state;
  expect(await state()).toBe('working');
  await vi.waitFor(async () => expect(await state()).toBe('unknown'), { interval: 200 });
  client.close();
});
