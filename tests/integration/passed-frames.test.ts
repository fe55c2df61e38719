import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { EVERYTHING } from '@interlude/protocol/scope';
import { SSE_HEADERS } from '@interlude/protocol/sse';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { exchange } from '@/lib/launch/exchange.mjs';
import { frontDoor } from '@/lib/launch/front-door.mjs';
import { StreamedResponse } from '@/lib/server/access/streamed-response';
import { FanOut } from '@/lib/server/fan-out/fan-out';
import { deltas, insertRows, type TestDatabase, temporaryDatabase } from '../support/database';

/** Frames on their way to a connection: direct, and through a body that is piped there. */
let database: TestDatabase;
let fanOut: FanOut;
let server: Server;
let client: Socket;
/** The task that pipes a stream to its response. */
let carry: (answer: StreamedResponse, incoming: IncomingMessage, response: ServerResponse) => Promise<void>;
beforeEach(async () => {
  carry = (answer, incoming, response) => exchange(async () => answer, incoming, response);
  database = await temporaryDatabase();
  fanOut = new FanOut(database);
  server = frontDoor(async (incoming, response) => {
    const disconnect = new AbortController();
    response.once('close', () => disconnect.abort());
    const open = await fanOut.subscribe({
      topics: [{ kind: 'session', sessionId: 's1' }],
      scope: EVERYTHING,
      after: null,
      signal: disconnect.signal,
    });
    await carry(new StreamedResponse(open, SSE_HEADERS), incoming, response);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
});
afterEach(async () => {
  client.destroy();
  fanOut.close();
  server.close();
  await database.dispose();
});

/** Requests the stream. @returns the bytes received so far */
async function listen(): Promise<() => string> {
  client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  await new Promise((resolve) => client.once('connect', resolve));
  client.on('error', () => undefined);
  let received = '';
  client.setEncoding('latin1').on('data', (chunk: string) => {
    received += chunk;
  });
  // HTTP/1.0: the body has no chunk lengths.
  client.write('GET / HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n');
  await vi.waitFor(() => expect(received).toContain('event: up-to-date'));
  return () => received;
}

const idsIn = (received: string) => [...received.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));

test('frames reach a reader that keeps up, after the response head and the greeting', async () => {
  const received = await listen();
  for (let index = 0; index < 20; index += 1) await insertRows(database, deltas(1, 's1', 'x'.repeat(index * 10)));
  await vi.waitFor(() => expect(idsIn(received())).toHaveLength(20));
  expect(received()).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(received().match(/HTTP\/1\.1/g)).toHaveLength(1);
  const [head = '', body = ''] = received().split('\r\n\r\n');
  expect(head).toContain('content-type: text/event-stream');
  expect(body).toMatch(/^event: hello\n/);
});

test('frames of any size reach a reader that pauses and resumes, once and in order', async () => {
  const received = await listen();
  const sizes = [10, 200_000, 50, 15_000, 17_000, 1, 400_000, 3, 3, 3, 60_000, 12_000];
  const count = 96;
  for (let index = 0; index < count; index += 1) {
    if (index % 24 === 0) client.pause();
    if (index % 24 === 16) client.resume();
    await insertRows(database, deltas(1, 's1', 'x'.repeat(sizes[index % sizes.length] as number)));
  }
  client.resume();
  await vi.waitFor(() => expect(idsIn(received()).length).toBeGreaterThanOrEqual(count));
  const ids = idsIn(received());
  expect(ids).toEqual(Array.from({ length: count }, (_, index) => (ids[0] as number) + index));
  const texts = [...received().matchAll(/"delta":"(x*)"/g)].map(([, text]) => text?.length);
  expect(texts).toEqual(Array.from({ length: count }, (_, index) => sizes[index % sizes.length]));
  expect(received()).not.toContain('event: bye');
});

test('frames arrive in order through a piped body that lags behind', async () => {
  carry = async (answer, _incoming, response) => {
    for await (const chunk of answer.body) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      response.write(chunk);
    }
  };
  const received = await listen();
  for (let index = 0; index < 60; index += 1)
    await insertRows(database, deltas(1, 's1', 'x'.repeat(index % 5 === 0 ? 20_000 : 1)));
  await vi.waitFor(() => expect(idsIn(received()).length).toBeGreaterThanOrEqual(60));
  const ids = idsIn(received());
  expect(ids).toEqual(ids.map((_, index) => (ids[0] as number) + index));
});
