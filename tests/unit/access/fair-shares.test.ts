import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ROUTES } from '@/lib/server/routes';
import { pathFor, validRequest } from '@/tests/support/busy-agent';
import { AccessStage, type Headers } from '../../support/access-stage';
import { type BusyAgent, busyAgent } from '../../support/busy-agent';

let stage: AccessStage;
let ids: BusyAgent;
beforeAll(async () => {
  stage = await AccessStage.start();
  ids = await busyAgent(stage, 'a');
});
afterAll(() => stage.close());

/** The read queues that every route uses for a sender with these headers. */
async function linesOf(headers: Headers, as = stage.owner): Promise<Set<string>> {
  const run = vi.spyOn(stage.parts.database.reads, 'run');
  try {
    for (const { method, pattern, access } of ROUTES) {
      // all scrapes share one read, in a queue of its own
      if (access === 'open' || access === 'observe' || method !== 'GET') continue;
      const before = run.mock.calls.length;
      const response = await stage.send(`${pathFor(pattern, ids)}${validRequest(method, pattern, ids).query}`, {
        as,
        headers,
      });
      if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
        // a runner's command stream uses no read queue
        if (pattern.endsWith('/stream')) await vi.waitFor(() => expect(run.mock.calls.length).toBeGreaterThan(before));
        await response.body?.cancel();
      } else await response.arrayBuffer();
    }
    return new Set(run.mock.calls.map(([client]) => client));
  } finally {
    run.mockRestore();
  }
}

test('reads of one credential share a queue, whatever headers it sends', async () => {
  const own = await linesOf({});
  expect(own.size).toBe(1);
  const others = { 'user-agent': 'another', cookie: 'a=b', 'x-forwarded-for': '198.51.100.9', accept: '*/*' };
  expect(await linesOf(others)).toEqual(own);
});

test('two sign-ins of one person have separate queues', async () => {
  const one = await linesOf({}, await stage.browser());
  const other = await linesOf({}, await stage.browser());
  expect([one.size, other.size]).toEqual([1, 1]);
  expect(one).not.toEqual(other);
});

test('two credentials have separate queues', async () => {
  const one = await linesOf(await stage.token({ role: 'admin' }));
  const other = await linesOf(await stage.token({ role: 'admin' }));
  expect([one.size, other.size]).toEqual([1, 1]);
  expect(one).not.toEqual(other);
});
