import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { FrameReader } from '../support/frames';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { openSocket } from '../support/raw-request';
import { expectWithin } from '../support/timing';

/** Clients that hold resources must not affect others. */
let server: LiveServer;
let port: number;
let head: string;
beforeAll(async () => {
  server = await startLiveServer();
  port = Number(new URL(server.url).port);
  head = `Host: 127.0.0.1:${port}\r\nAuthorization: Bearer ${server.token}\r\n`;
});
afterAll(() => server.stop());

test('the server releases fifty streams that are opened and cut repeatedly', async () => {
  const before = openFiles();
  for (let round = 0; round < 6; round += 1) {
    const sockets = await Promise.all(Array.from({ length: 50 }, () => openSocket(port, streamOf('fleet', '0'))));
    await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('data', resolve))));
    for (const socket of sockets) socket.resetAndDestroy();
  }
  // the database pools some connections
  await expect.poll(openFiles).toBeLessThan(before + 60);
  const posted = await post('cut', 1, 1);
  expect(posted.status).toBe(200);
});

test('the server serves other clients while four hundred requests stay incomplete', async () => {
  const halfABody = `POST /api/v1/events HTTP/1.1\r\n${head}Content-Length: 1000000\r\n\r\n{`;
  const sockets = await Promise.all(
    Array.from({ length: 400 }, (_, index) => openSocket(port, index % 2 === 0 ? halfABody : 'GET / HT')),
  );
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  const since = performance.now();
  expect((await post('loris', 1, 1)).status).toBe(200);
  expectWithin(performance.now() - since, 5_000);
});

test('the server cuts off an incomplete body within seconds, unless it has the token', async () => {
  const half = (headers: string) =>
    openSocket(port, `POST /api/v1/events HTTP/1.1\r\n${headers}Content-Length: 9\r\n\r\n{`);
  const known = await half(head);
  onTestFinished(() => void known.destroy());
  const host = `Host: 127.0.0.1:${port}\r\n`;
  const strangers = [
    await half(host),
    await half(`${host}Authorization: Bearer a-token-that-is-wrong\r\n`),
    await half(`${host}Cookie: interlude=1.x\r\n`),
    await openSocket(port, `POST /sign-in HTTP/1.1\r\n${host}Content-Length: 9\r\n\r\nt`),
    await openSocket(port, `POST / HTTP/1.1\r\n${host}Content-Length: 9\r\n\r\nt`),
  ];
  const since = performance.now();
  await Promise.all(
    strangers.map((socket) => new Promise((resolve) => socket.once('close', resolve).once('end', resolve).resume())),
  );
  expectWithin(performance.now() - since, 30_000);
  expect(known.readyState).toBe('open');
});

test('the server logs no stack when clients disconnect mid-request', async () => {
  expect((await post('hung-up', 1, 40, 100_000)).status).toBe(200);
  const host = `Host: 127.0.0.1:${port}\r\n`;
  const link = await fetch(`${server.url}/sign-in?token=${server.token}`, { redirect: 'manual' });
  const cookie = `${host}Cookie: ${link.headers.get('set-cookie')?.split(';')[0]}\r\nSec-Fetch-Site: same-origin\r\n`;
  const length = 'Content-Length: 1000000\r\n\r\n{"producer":';
  const requests = [
    `POST /api/v1/events HTTP/1.1\r\n${head}${length}`,
    `POST /api/v1/events HTTP/1.1\r\n${head}Content-Encoding: gzip\r\n${length}`,
    `POST /api/v1/events HTTP/1.1\r\n${host}${length}`,
    `POST /api/v1/sessions/hung-up/messages HTTP/1.1\r\n${cookie}${length}`,
    `POST /sign-in HTTP/1.1\r\n${host}${length}`,
    `POST / HTTP/1.1\r\n${cookie}${length}`,
    streamOf('session:hung-up', '0'),
    `GET /api/v1/agents/hung-up/commands?runner=r&startedAt=1 HTTP/1.1\r\n${head}\r\n`,
    `GET /api/v1/sessions/hung-up/transcript HTTP/1.1\r\n${head}\r\n`,
    `GET /api/v1/agents/hung-up/logs/download HTTP/1.1\r\n${head}\r\n`,
    // more than the readers' concurrency; the rest queue
    ...Array.from({ length: 6 }, () => `GET /api/v1/sessions HTTP/1.1\r\n${head}\r\n`),
    `GET / HTTP/1.1\r\n${cookie}\r\n`,
    `GET /sessions/hung-up HTTP/1.1\r\n${cookie}\r\n`,
    `GET /agents/hung-up/logs HTTP/1.1\r\n${cookie}RSC: 1\r\n\r\n`,
  ];
  const [before, files] = [server.output, openFiles()];
  for (let round = 0; round < 4; round += 1) {
    for (const request of requests) {
      const socket = await openSocket(port, request);
      // immediately, or after the first response bytes, if any
      if (round % 2 === 1 && request.startsWith('GET')) await new Promise((resolve) => socket.once('data', resolve));
      if (round < 2) socket.resetAndDestroy();
      else socket.destroy();
    }
  }
  expect((await post('hung-up', 41, 1)).status).toBe(200);
  // the server has released all of them
  await expect.poll(openFiles).toBeLessThan(files + 10);
  expect(server.output.slice(before.length)).toBe('');
});

test('the server answers a client that half-closes its connection', async () => {
  const socket = await openSocket(port, `GET /api/v1/healthz HTTP/1.1\r\n${head}Connection: close\r\n\r\n`);
  socket.end();
  const [answer] = (await new Promise((resolve) => socket.once('data', (...data) => resolve(data)))) as [Buffer];
  expect(answer.toString('latin1')).toMatch(/^HTTP\/1\.1 200 /);
});

test('the server cuts off an unread stream after bounded buffering', async () => {
  const never = await openSocket(port, streamOf('session:flood'));
  onTestFinished(() => void never.destroy());
  await new Promise((resolve) => never.once('data', resolve));
  never.pause();
  const response = await fetch(`${server.url}/api/v1/stream?topic=session:flood`, {
    headers: { authorization: `Bearer ${server.token}` },
  });
  const reader = new FrameReader(response.body as ReadableStream<Uint8Array>);
  await reader.frame('up-to-date');
  let highestMiB = 0;
  const before = memoryMiB();
  for (let batch = 0; batch < 25; batch += 1) {
    expect((await post('flood', 40 * batch + 1, 40, 100_000)).status).toBe(200);
    // A reader that is two batches late is cut off, too.
    await reader.until((all) => all.filter(({ event }) => event === 'session-event').length === 40 * (batch + 1));
    highestMiB = Math.max(highestMiB, memoryMiB());
  }
  expect(reader.frames.flatMap((frame) => (frame.event === 'session-event' ? [frame.data.seq] : []))).toEqual(
    Array.from({ length: 1_000 }, (_, index) => index + 1),
  );
  await reader.cancel();
  expect(highestMiB - before).toBeLessThan(500);
  // after a few megabytes of kernel buffers the stream ends, without a gap
  let received = 0;
  never.on('data', (chunk) => {
    received += chunk.length;
  });
  const closed = new Promise((resolve) => never.once('close', resolve));
  never.once('end', () => never.destroy());
  never.resume();
  await closed;
  expect(received).toBeLessThan(50_000_000);
});

function streamOf(topic: string, after?: string): string {
  const query = after === undefined ? '' : `&after=${after}`;
  return `GET /api/v1/stream?topic=${topic}${query} HTTP/1.1\r\n${head}\r\n`;
}

function post(id: string, fromSeq: number, count: number, bytes = 10): Promise<Response> {
  const records = Array.from({ length: count }, (_, index) => ({
    seq: fromSeq + index,
    kind: 'event',
    agentId: id,
    sessionId: id,
    occurredAt: 1,
    event: { type: 'CUSTOM', name: 'flood', value: 'x'.repeat(bytes) },
  }));
  const send = () =>
    fetch(`${server.url}/api/v1/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.token}` },
      body: JSON.stringify({ producer: { id, epoch: 1 }, records }),
    });
  // The server may close an idle connection at this moment. A resend is deduplicated.
  return send().catch(send);
}

/** The server's resident memory; 0 without /proc. */
function memoryMiB(): number {
  const file = `/proc/${server.pid}/status`;
  const status = existsSync(file) ? readFileSync(file, 'utf8') : '';
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1024;
}

/** Number of the server's open file descriptors; 0 without /proc. */
function openFiles(): number {
  const folder = `/proc/${server.pid}/fd`;
  return existsSync(folder) ? readdirSync(folder).length : 0;
}
