import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { createClient } from '@libsql/client';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startLiveServer } from '../support/live-server';

const PAGE_BYTES = 4096;

test('the server logs damage once without a stack when many streams and pages hit it', async () => {
  const server = await startLiveServer();
  onTestFinished(() => server.stop());
  const headers = { authorization: `Bearer ${server.token}` };
  const records = Array.from({ length: 100 }, (_, index) => ({
    seq: index + 1,
    kind: 'event',
    agentId: 'a',
    sessionId: 's',
    occurredAt: 1,
    event: { type: 'CUSTOM', name: 'n', value: 'x'.repeat(2 * PAGE_BYTES) },
  }));
  const body = JSON.stringify({ producer: { id: 'p', epoch: 1 }, records });
  expect((await fetch(`${server.url}/api/v1/events`, { method: 'POST', headers, body })).status).toBe(200);
  await server.signal('SIGTERM');
  await corrupt(join(server.dataDir, 'interlude.db'));
  await server.restart();
  const stream = () => fetch(`${server.url}/api/v1/stream?topic=session:s&after=0`, { headers });
  const ends = await Promise.all(
    Array.from({ length: 5 }, async () => (await stream()).text().catch(() => 'broken off')),
  );
  expect(ends.filter((end) => end === 'broken off').length).toBeGreaterThan(0);
  const page = () => fetch(`${server.url}/sessions/s`, { headers });
  await (await page()).text();
  await vi.waitFor(async () => expect((await fetch(`${server.url}/readyz`)).status).toBe(503));
  const lines = server.output.split('\n');
  expect(lines.filter((line) => line.includes('has a corrupt page'))).toHaveLength(1);
  expect(lines.filter((line) => /^\s+at /.test(line) || line.includes('failed to pipe'))).toEqual([]);
});

/** Overwrites every overflow page of the events table in a closed file. */
async function corrupt(path: string): Promise<void> {
  const client = createClient({ url: `file:${path}` });
  const { rows } = await client.execute("SELECT pageno FROM dbstat WHERE name = 'events' AND pagetype = 'overflow'");
  client.close();
  expect(rows.length).toBeGreaterThan(100);
  const file = openSync(path, 'r+');
  const garbage = new Uint8Array(PAGE_BYTES).fill(0x5a);
  for (const { pageno } of rows) writeSync(file, garbage, 0, PAGE_BYTES, (Number(pageno) - 1) * PAGE_BYTES);
  closeSync(file);
}
