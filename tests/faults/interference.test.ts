import { afterAll, beforeAll, expect, test } from 'vitest';
import { HOSTILE_CASES } from '../support/hostile-batches';
import { probeHealth } from '../support/latency-probes';
import { longestBlock, sendHostile } from '../support/send-hostile';
import { liveServer, type ServerTarget } from '../support/server-target';
import { scaled } from '../support/timeouts';
import { expectWithin } from '../support/timing';

/**
 * Latency of `/healthz` while the worst accepted input is ingested and read. On an idle machine the limit is 100 ms,
 * which the bench `interference` checks.
 */
const AT_MOST_MS = 1_000;
const WORST = [
  'tasks started in one turn, then ended',
  'sessions',
  'deltas of an endless message',
  'turns that all fold all tasks',
  'JSON of maximum record width and depth',
];

let server: ServerTarget;
beforeAll(async () => {
  server = await liveServer();
});
afterAll(() => server.close());

test('answers other clients while it ingests and serves worst-case input', async () => {
  // the first request also loads code
  await server.get('/api/v1/sessions');
  const names = HOSTILE_CASES.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(WORST));
  for (const [index, hostile] of HOSTILE_CASES.entries()) {
    if (!scaled(WORST, names).includes(hostile.name)) continue;
    const measure = async (work: () => Promise<void>) => (await probeHealth(server.origin, work)).longestMs;
    const held = await sendHostile(server, hostile, measure, `${index}-`);
    const worst = longestBlock(held);
    process.stdout.write(`slowest /healthz: ${worst.longestMs.toFixed(0)} ms, ${worst.what}\n`);
    expectWithin(worst.longestMs, AT_MOST_MS, worst.what);
  }
});
