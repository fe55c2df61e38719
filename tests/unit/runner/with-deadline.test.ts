import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { send } from '@interlude/runner/outbox/delivery';
import { withDeadline } from '@interlude/runner/with-deadline';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

/** A server that accepts every connection and never says a word. */
let silent: Server;
let url = '';
let collecting: NodeJS.Timeout;

beforeAll(async () => {
  silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  // What is only weakly held is gone at once, as it is sooner or later in a runner that lives for days.
  setFlagsFromString('--expose-gc');
  collecting = setInterval(runInNewContext('gc') as () => void, 20);
});
afterAll(() => {
  clearInterval(collecting);
  silent.close();
});

describe('a deadline', () => {
  test('is kept whatever the garbage collector does', async () => {
    const work = (signal: AbortSignal) => fetch(url, { signal });
    await expect(withDeadline(300, new AbortController().signal, work)).rejects.toThrow('no answer in time');
  });

  test('gives way to the caller who calls it off', async () => {
    const caller = new AbortController();
    const work = (signal: AbortSignal) => fetch(url, { signal });
    const waiting = withDeadline(60_000, caller.signal, work);
    caller.abort(new Error('called off'));
    await expect(waiting).rejects.toThrow('called off');
    await expect(withDeadline(60_000, caller.signal, work)).rejects.toThrow('called off');
  });

  test('ends a request to a server that accepts and never answers, so that the outbox tries again', async () => {
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
