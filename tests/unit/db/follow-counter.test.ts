import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { followCounter, listenUrlOf, shareFollower } from '@/db/follow-counter';
import { serverAddress } from '@/db/open-server';

/** A server's feed, and the counter beside it. */
let server: Server;
let feeds: ServerResponse[];
let position: number;
let stop: () => void;
const onMove = vi.fn();
const INTERVALS = { pollMs: 5, seldomMs: 20, openAgainMs: 5 };

beforeEach(async () => {
  feeds = [];
  position = 0;
  onMove.mockClear();
  server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.flushHeaders();
    feeds.push(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const listenUrl = listenUrlOf(`http://127.0.0.1:${port}`);
  stop = followCounter({ listenUrl, authToken: undefined, counter: async () => position }, onMove, INTERVALS);
});
afterEach(async () => {
  stop();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

test('a feed that reports nothing while the counter moves is reopened', async () => {
  await vi.waitUntil(() => feeds.length === 1);
  const moves = setInterval(() => {
    position += 1;
  }, 5);
  await vi.waitUntil(() => feeds.length >= 2).finally(() => clearInterval(moves));
});

test('a feed that reports moves stays open, and polling finds a move that it misses', async () => {
  await vi.waitUntil(() => feeds.length === 1);
  for (let n = 1; n <= 20; n += 1) {
    const calls = onMove.mock.calls.length;
    position += 1;
    feeds[0]?.write('data: {}\n\n');
    await vi.waitUntil(() => onMove.mock.calls.length > calls);
  }
  const calls = onMove.mock.calls.length;
  position += 1;
  await vi.waitUntil(() => onMove.mock.calls.length > calls);
  expect(feeds).toHaveLength(1);
});

test('a feed that ends is reopened', async () => {
  await vi.waitUntil(() => feeds.length === 1);
  feeds[0]?.end();
  await vi.waitUntil(() => feeds.length === 2);
});

describe('a shared follower', () => {
  /** The followers that started and have not stopped, in order. */
  let running: (() => void)[];
  let begun: number;
  let follow: ReturnType<typeof shareFollower>;
  beforeEach(() => {
    running = [];
    begun = 0;
    follow = shareFollower((tell) => {
      begun += 1;
      running.push(tell);
      return () => running.splice(running.indexOf(tell), 1);
    });
  });

  test('is one for all, from the first subscriber until the last leaves', () => {
    expect(begun).toBe(0);
    const leave = [follow(onMove), follow(onMove), follow(onMove)];
    expect([begun, running.length]).toEqual([1, 1]);
    leave[0]?.();
    leave[0]?.();
    leave[2]?.();
    expect(running).toHaveLength(1);
    onMove.mockClear();
    running[0]?.();
    expect(onMove).toHaveBeenCalledTimes(1);
    leave[1]?.();
    expect(running).toHaveLength(0);
    leave[1]?.();
    const last = follow(onMove);
    leave[1]?.();
    expect([begun, running.length]).toEqual([2, 1]);
    last();
    expect(running).toHaveLength(0);
  });

  test('wakes later subscribers, unless they left, and reports each move to all', async () => {
    const [first, second, gone] = [vi.fn(), vi.fn(), vi.fn()];
    follow(first);
    running[0]?.();
    follow(second);
    follow(gone)();
    await Promise.resolve();
    expect([first, second, gone].map(({ mock }) => mock.calls.length)).toEqual([1, 1, 0]);
    running[0]?.();
    expect([first, second, gone].map(({ mock }) => mock.calls.length)).toEqual([2, 2, 0]);
  });
});

test.each([
  ['libsql://db.example.com', 'https://db.example.com', undefined],
  ['libsql://db.example.com:8080?tls=0', 'http://db.example.com:8080', undefined],
  ['wss://db.example.com/one/?authToken=t.1', 'https://db.example.com/one/', 't.1'],
  ['ws://127.0.0.1:8080', 'http://127.0.0.1:8080/', undefined],
  ['http://127.0.0.1:8080/?x=1', 'http://127.0.0.1:8080/?x=1', undefined],
])('the address %s is %s', (address, url, authToken) => {
  expect(serverAddress(address, undefined)).toEqual({ url, authToken });
});
