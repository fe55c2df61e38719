import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { retryMs, withDeadline } from '@interlude/runner/host/server-request';
import { send } from '@interlude/runner/outbox/delivery';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

test('waits between half and all of min(10 s, 1 s · 2^(k−1)) after the k-th failure', () => {
  const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5_000 }), random, (failures, chance) => {
      const longest = Math.min(10_000, 1_000 * 2 ** (failures - 1));
      const wait = retryMs('unavailable', failures, chance);
      expect(wait).toBeGreaterThanOrEqual(longest / 2);
      expect(wait).toBeLessThanOrEqual(longest);
      expect(retryMs('unavailable', failures, chance, 8_000)).toBeLessThanOrEqual(8_000);
    }),
  );
});

test('retries a refused token every 15 to 30 seconds', () => {
  expect([0, 1].map((random) => retryMs('unauthorized', 3, random))).toEqual([15_000, 30_000]);
});

/** A server that accepts every connection and never answers. */
let silent: Server;
let url = '';
let collecting: NodeJS.Timeout;

beforeAll(async () => {
  silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  // Collects weakly held objects at once, as happens eventually in a runner that lives for days.
  setFlagsFromString('--expose-gc');
  collecting = setInterval(runInNewContext('gc') as () => void, 20);
});
afterAll(() => {
  clearInterval(collecting);
  silent.close();
});

describe('withDeadline', () => {
  test('survives garbage collection', async () => {
    const work = (signal: AbortSignal) => fetch(url, { signal });
    await expect(withDeadline(300, new AbortController().signal, work)).rejects.toThrow('no answer in time');
  });

  test("aborts with the caller's signal", async () => {
    const caller = new AbortController();
    const work = (signal: AbortSignal) => fetch(url, { signal });
    const waiting = withDeadline(60_000, caller.signal, work);
    caller.abort(new Error('called off'));
    await expect(waiting).rejects.toThrow('called off');
    await expect(withDeadline(60_000, caller.signal, work)).rejects.toThrow('called off');
  });

  test('ends a request to a server that never answers, so that the outbox retries', async () => {
    const rows = [{ seq: 1, kind: 'event', body: '{"kind":"event"}' }];
    const { signal } = new AbortController();
    const endpoint = async () => ({ url, token: undefined });
    const outcome = await send({ endpoint, producer: { id: 'p', epoch: 1 }, rows, timeoutMs: 300, signal });
    expect(outcome).toEqual({
      kind: 'unavailable',
      message: 'the server did not answer in time',
      retryAfterMs: null,
    });
  });
});
