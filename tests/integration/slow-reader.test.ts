import type { Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { EVERYTHING } from '@interlude/protocol/scope';
import { SSE_HEADERS } from '@interlude/protocol/sse';
import { afterEach, beforeEach, expect, type MockInstance, test, vi } from 'vitest';
import { exchange } from '@/lib/launch/exchange.mjs';
import { frontDoor } from '@/lib/launch/front-door.mjs';
import { type OpenStream, StreamedResponse } from '@/lib/server/access/streamed-response';
import { CommandStream } from '@/lib/server/commands/command-stream';
import { FanOut } from '@/lib/server/fan-out/fan-out';
import { deltas, insertRows, type TestDatabase, temporaryDatabase } from '../support/database';

/** Disconnected readers that read nothing: the rest of the stream remains in the socket's buffers. */
const LINGER_MS = 50;
const MIB = 'x'.repeat(1024 * 1024);

let database: TestDatabase;
let fanOut: FanOut;
let server: Server;
let client: Socket;
let logged: MockInstance;
beforeEach(async () => {
  logged = vi.spyOn(process.stderr, 'write');
  database = await temporaryDatabase();
  fanOut = new FanOut(database, { lingerMs: LINGER_MS, maxBacklogBytes: 100_000 });
  server = await listening((signal) =>
    fanOut.subscribe({ topics: [{ kind: 'session', sessionId: 's1' }], scope: EVERYTHING, after: null, signal }),
  );
});
afterEach(async () => {
  // Connects and disconnects need no stack traces.
  expect(logged.mock.calls).toEqual([]);
  logged.mockRestore();
  client.destroy();
  fanOut.close();
  server.close();
  await database.dispose();
});

test('a reader disconnected for being slow loses its connection when it still does not read', async () => {
  client = await request(server);
  await vi.waitFor(() => expect(fanOut.subscriberCount).toBe(1));
  while (fanOut.subscriberCount > 0) await insertRows(database, deltas(4, 's1', MIB));
  await vi.waitFor(async () => expect(await connectionsOf(server)).toBe(0));
});

test('a reader disconnected for being slow keeps its connection while it reads the rest', async () => {
  client = await request(server);
  await vi.waitFor(() => expect(fanOut.subscriberCount).toBe(1));
  await insertRows(database, deltas(1));
  let received = '';
  client.on('data', (chunk) => {
    received += chunk.toString('latin1');
  });
  client.resume();
  await vi.waitFor(() => expect(received).toContain('session-event'));
  fanOut.close('planned');
  await vi.waitFor(() => expect(received).toContain('bye'));
  await new Promise((resolve) => setTimeout(resolve, 4 * LINGER_MS));
  expect(await connectionsOf(server)).toBe(1);
});

test('a fenced runner that does not read loses its connection', async () => {
  server.close();
  const text = MIB.slice(0, 256 * 1024);
  let stream: CommandStream | undefined;
  server = await listening(async () => {
    stream = new CommandStream({
      agentId: 'a1',
      runner: { id: 'r1', startedAt: 1 },
      after: 0,
      claim: async (_self, after) => ({
        kind: 'claimed',
        counter: after,
        commands: Array.from({ length: 80 }, (_, index) => commandOf(index + 1, text)),
      }),
      onEnd: () => {},
      lingerMs: LINGER_MS,
    });
    stream.sendHello('ok');
    stream.wake();
    return stream.open;
  });
  client = await request(server);
  await vi.waitFor(() => expect(stream).toBeDefined());
  stream?.close('replaced');
  await vi.waitFor(async () => expect(await connectionsOf(server)).toBe(0));
});

function commandOf(position: number, text: string) {
  const body = { messageId: `m${position}`, text, from: { kind: 'person' as const, id: 'p' } };
  const command = { id: `c${position}`, type: 'message' as const, sessionId: 's1', createdAt: 1, expiresAt: 2, body };
  return { command, position, agentId: 'a1', state: 'queued' as const, reason: null, claimedBy: null };
}

/** The front door, which writes a stream to the connection itself. */
async function listening(open: (signal: AbortSignal) => Promise<OpenStream>): Promise<Server> {
  const door = frontDoor((incoming, response) =>
    exchange(async ({ signal }) => new StreamedResponse(await open(signal), SSE_HEADERS), incoming, response),
  );
  await new Promise<void>((resolve) => {
    door.listen(0, '127.0.0.1', resolve);
  });
  return door;
}

/** A connection that sends a request and never reads. */
async function request(to: Server): Promise<Socket> {
  const socket = connect((to.address() as AddressInfo).port, '127.0.0.1');
  await new Promise((resolve) => socket.once('connect', resolve));
  socket.on('error', () => undefined);
  socket.pause();
  socket.write('GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n');
  return socket;
}

function connectionsOf(of: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    of.getConnections((error, count) => (error ? reject(error) : resolve(count)));
  });
}
