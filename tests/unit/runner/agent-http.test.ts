import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type BrokenStream, readEventStream } from '@interlude/runner/host/agent-http';
import { expect, onTestFinished, test } from 'vitest';

/** A server whose streams the test ends, cuts and refuses. */
async function stage(options: { silentMs?: number; missingMs?: number; status?: number } = {}) {
  const streams: ServerResponse[] = [];
  const lastIds: (string | undefined)[] = [];
  let { status = 200 } = options;
  const server = createServer((request, response) => {
    lastIds.push(request.headers['last-event-id'] as string | undefined);
    response.writeHead(status, { 'content-type': 'text/event-stream' });
    if (status !== 200) response.end();
    else {
      response.flushHeaders();
      streams.push(response);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const events: string[] = [];
  const broken: BrokenStream[] = [];
  let opened = 0;
  const over = new AbortController();
  const done = readEventStream({
    open: (signal, lastEventId) =>
      fetch(url, { signal, headers: lastEventId === null ? {} : { 'last-event-id': lastEventId } }),
    onOpen: () => {
      opened += 1;
    },
    onEvent: ({ data }) => events.push(data),
    onBroken: (one) => broken.push(one),
    longestMs: 20,
    random: () => 0,
    signal: over.signal,
    ...options,
  });
  onTestFinished(async () => {
    over.abort();
    server.closeAllConnections();
    server.close();
    await done;
  });
  return {
    events,
    broken,
    lastIds,
    done,
    over,
    opened: () => opened,
    stream: async (at: number) => {
      await expect.poll(() => streams[at], { interval: 5 }).toBeDefined();
      return streams[at] as ServerResponse;
    },
    answers: (code: number) => {
      status = code;
    },
  };
}

test('reopens an ended stream after the last event', async () => {
  const { stream, events, lastIds, broken } = await stage();
  (await stream(0)).end('id: 7\ndata: one\n\ndata: cut off in the mid');
  const second = await stream(1);
  second.write('data: two\n\n');
  await expect.poll(() => events).toEqual(['one', 'two']);
  expect(lastIds).toEqual([undefined, '7']);
  expect(broken[0]).toMatchObject({ reason: 'ended', failures: 1 });
});

test('backs off further from a stream that was never there than from one that was', async () => {
  const missing = await stage({ missingMs: 40, status: 404 });
  await expect.poll(() => missing.broken.length).toBeGreaterThan(0);
  expect(missing.broken[0]?.againInMs).toBe(20);
  const { broken, answers, stream } = await stage({ missingMs: 300_000 });
  (await stream(0)).destroy();
  answers(404);
  await expect.poll(() => broken.length).toBeGreaterThan(12);
  expect(new Set(broken.map(({ againInMs }) => againInMs))).toEqual(new Set([10]));
});

test('retries a refused stream and reports each reason', async () => {
  const { broken, answers, stream, opened, lastIds } = await stage();
  (await stream(0)).destroy();
  answers(404);
  await expect.poll(() => broken.length).toBeGreaterThan(12);
  expect(broken.at(-1)).toMatchObject({ reason: 'answered 404', status: 404 });
  const failures = broken.map((one) => one.failures);
  expect(failures).toEqual(failures.map((_, index) => index + 1));
  answers(200);
  await stream(1);
  await expect.poll(opened).toBe(2);
  expect(lastIds.length).toBeGreaterThan(12);
});

test('reopens a silent stream', async () => {
  const { broken, stream } = await stage({ silentMs: 50 });
  (await stream(0)).write('data: one\n\n');
  await expect.poll(() => broken[0]?.reason).toBe('was silent for too long');
});

test('ends on the signal, even while it waits', async () => {
  const { done, over, stream } = await stage();
  await stream(0);
  over.abort();
  await expect(done).resolves.toBeUndefined();
});
