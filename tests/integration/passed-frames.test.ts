import type { Server, ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { pipeToNodeResponse } from 'next/dist/server/pipe-readable';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Peer, peerOf } from '@/lib/access/peer';
import { FanOut } from '@/lib/fan-out/fan-out';
import { frontDoor } from '@/lib/launch/front-door.mjs';
import { type TestDatabase, temporaryDatabase } from '../support/database';
import { deltas, insertRows } from '../support/insert-rows';
import { PATIENTLY } from '../support/patience';

/** Frames that go to the connection at once, between others that take the stream. */
let database: TestDatabase;
let fanOut: FanOut;
let server: Server;
let client: Socket;
/** What carries a stream to its response. */
let carry: (stream: ReadableStream<Uint8Array>, response: ServerResponse) => Promise<void>;
const passed: boolean[] = [];
beforeEach(async () => {
  passed.length = 0;
  carry = (stream, response) => pipeToNodeResponse(stream, response);
  database = await temporaryDatabase();
  fanOut = new FanOut(database);
  server = frontDoor(async (_incoming, response) => {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const peer = watched(peerOf(new Request('http://127.0.0.1/')));
    const topics = [{ kind: 'session', sessionId: 's1' }] as const;
    const stream = await fanOut.subscribe(topics, null, gone.signal, null, peer);
    response.setHeader('content-type', 'text/event-stream');
    await carry(stream, response);
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

function watched(peer: Peer): Peer {
  return {
    ...peer,
    pass(chunk, behind) {
      const isPassed = peer.pass(chunk, behind);
      passed.push(isPassed);
      return isPassed;
    },
  };
}

/** Asks for the stream. @returns what has come of it */
async function listen(): Promise<() => string> {
  client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  await new Promise((resolve) => client.once('connect', resolve));
  client.on('error', () => undefined);
  let received = '';
  client.setEncoding('latin1').on('data', (chunk: string) => {
    received += chunk;
  });
  // HTTP/1.0: the body comes as it is, without the lengths of its chunks
  client.write('GET / HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n');
  await vi.waitFor(() => expect(received).toContain('event: up-to-date'), PATIENTLY);
  return () => received;
}

const idsIn = (received: string) => [...received.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));

test('reach a reader who keeps up, behind the head of the answer and what greets them', async () => {
  const received = await listen();
  for (let at = 0; at < 20; at += 1) await insertRows(database, deltas(1, 's1', 'x'.repeat(at * 10)));
  await vi.waitFor(() => expect(idsIn(received())).toHaveLength(20), PATIENTLY);
  expect(received()).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(received().match(/HTTP\/1\.1/g)).toHaveLength(1);
  const [head = '', body = ''] = received().split('\r\n\r\n');
  expect(head).toContain('content-type: text/event-stream');
  expect(body).toMatch(/^event: hello\n/);
  expect(passed[0]).toBe(false);
  expect(passed.filter(Boolean).length).toBeGreaterThan(10);
});

test('come once and in order to one who reads by fits and starts, however large they are', async () => {
  const received = await listen();
  const sizes = [10, 200_000, 50, 15_000, 17_000, 1, 400_000, 3, 3, 3, 60_000, 12_000];
  const count = 240;
  for (let at = 0; at < count; at += 1) {
    if (at % 24 === 0) client.pause();
    if (at % 24 === 16) client.resume();
    await insertRows(database, deltas(1, 's1', 'x'.repeat(sizes[at % sizes.length] as number)));
  }
  client.resume();
  await vi.waitFor(() => expect(idsIn(received()).length).toBeGreaterThanOrEqual(count), PATIENTLY);
  const ids = idsIn(received());
  expect(ids).toEqual(Array.from({ length: count }, (_, at) => (ids[0] as number) + at));
  const texts = [...received().matchAll(/"delta":"(x*)"/g)].map(([, text]) => text?.length);
  expect(texts).toEqual(Array.from({ length: count }, (_, at) => sizes[at % sizes.length]));
  expect(new Set(passed)).toEqual(new Set([true, false]));
  expect(received()).not.toContain('event: bye');
});

test('wait behind what has left the stream and has not reached the connection', async () => {
  carry = async (stream, response) => {
    for await (const chunk of stream) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      response.write(chunk);
    }
  };
  const received = await listen();
  for (let at = 0; at < 60; at += 1) await insertRows(database, deltas(1, 's1', 'x'.repeat(at % 5 === 0 ? 20_000 : 1)));
  await vi.waitFor(() => expect(idsIn(received()).length).toBeGreaterThanOrEqual(60), PATIENTLY);
  const ids = idsIn(received());
  expect(ids).toEqual(ids.map((_, at) => (ids[0] as number) + at));
});
