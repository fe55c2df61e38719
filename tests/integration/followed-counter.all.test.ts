import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FrameReader } from '../support/frames';
import { ingest, record } from '../support/ingest-target';
import { ensureLibsqlServer, startLibsqlServer } from '../support/libsql-server.mjs';
import { type InProcessServer, inProcessServer } from '../support/server-target';
import { type RecordingProxy, recordingProxy } from '../support/test-proxies';
import { expectWithin } from '../support/timing';

/** Queries of instances at a libSQL server without a feed, and the latency between instances. */
const suites = 'missing' in ensureLibsqlServer() ? describe.skip : describe;
const PERIOD_MS = 2_000;
/** Four a second, and a few more on a slow machine that catches up. */
const AT_MOST = 10;
/** Writes read it as well, among other tables. */
const COUNTER_ALONE = /\[\{"type":"execute","stmt":\{"sql":"SELECT position FROM counter"/;

let libsql: Awaited<ReturnType<typeof startLibsqlServer>>;
let line: RecordingProxy;
const ends: (() => Promise<unknown>)[] = [];
beforeEach(async () => {
  libsql = await startLibsqlServer();
  ends.push(() => libsql.stop());
  line = await recordingProxy(libsql.url);
  ends.push(() => line.close());
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function instance(settings: Record<string, string> = {}, url = line.origin): Promise<InProcessServer> {
  const target = await inProcessServer(url, settings);
  ends.push(() => target.close());
  return target;
}

async function listener(target: InProcessServer, agentId: string): Promise<FrameReader> {
  const { body } = await target.get(`/api/v1/agents/${agentId}/commands`);
  const reader = new FrameReader(body as ReadableStream<Uint8Array>);
  await reader.until((frames) => frames.some(({ event }) => `${event}` === 'up-to-date'));
  return reader;
}

/** Counts queries for the counter alone during a period. */
async function countQueries(): Promise<number> {
  const queries = () => line.asked(COUNTER_ALONE);
  const before = queries();
  await new Promise((resolve) => setTimeout(resolve, PERIOD_MS));
  return queries() - before;
}

const marker = record(1, { agentId: 'a1', sessionId: 's1', event: { type: 'CUSTOM', name: 'marker', value: 0 } });
const post = (target: InProcessServer, text: string) =>
  target.send('/api/v1/sessions/s1/messages', {
    method: 'POST',
    headers: { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ text, clientId: text }),
  });

suites('the counter of a libSQL server without a feed', () => {
  test('is polled only while something listens, once for all listeners', async () => {
    const target = await instance();
    await ingest(target, [marker], 1, 'a1');
    expect(await countQueries()).toBe(0);
    const runners = [await listener(target, 'a1'), await listener(target, 'a2')];
    const pages = [await target.stream('topic=fleet'), await target.stream('topic=session:s1')];
    for (const page of pages) await page.frame('up-to-date');
    const shared = await countQueries();
    expect(shared).toBeGreaterThan(1);
    expect(shared).toBeLessThanOrEqual(AT_MOST);
    for (const runner of runners) await runner.cancel();
    expect(await countQueries()).toBeGreaterThan(1);
    for (const page of pages) await page.cancel();
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(await countQueries()).toBe(0);
  });

  test('delivers a command posted at another instance to a runner, also after an open page has gone', async () => {
    const [near, far] = [await instance(), await instance({}, libsql.url)];
    await ingest(near, [marker], 1, 'a1');
    const page = await near.stream('topic=fleet');
    await page.frame('up-to-date');
    const runner = await listener(near, 'a1');
    const commands = () => runner.frames.filter(({ event }) => `${event}` === 'command').length;
    for (const [index, text] of ['one', 'two', 'three', 'four'].entries()) {
      if (index === 2) await page.cancel();
      const sentAt = performance.now();
      expect((await post(far, text)).status).toBe(202);
      await runner.until(() => commands() === index + 1);
      expectWithin(performance.now() - sentAt, 1_000, text);
    }
    await runner.cancel();
  });

  test('is read once for a page where each request has its own server', async () => {
    const target = await instance({ INTERLUDE_CONTEXT: 'per-request' });
    const page = await target.stream('topic=fleet');
    await page.frame('up-to-date');
    const shared = await countQueries();
    expect(shared).toBeGreaterThan(1);
    expect(shared).toBeLessThanOrEqual(AT_MOST);
    // History, logs and refusals are left to the host's own schedule.
    expect(line.asked(/FROM refusals/)).toBe(0);
    expect(line.asked(/"value":"(history|logs)"/)).toBe(0);
    await page.cancel();
  });
});
