import { once } from 'node:events';
import { Agent, type IncomingMessage, type RequestOptions, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { expect, onTestFinished, test, vi } from 'vitest';
import { exchange } from '@/lib/launch/exchange.mjs';
import { frontDoor } from '@/lib/launch/front-door.mjs';

/** Responses written straight to the connection, without Next. */
async function serving(handle: (request: Request) => Promise<Response>) {
  const door = frontDoor((incoming, response) => exchange(handle, incoming, response));
  door.listen(0, '127.0.0.1');
  await once(door, 'listening');
  onTestFinished(() => {
    door.closeAllConnections();
    door.close();
  });
  const { port } = door.address() as AddressInfo;
  return (options: RequestOptions = {}) => request({ host: '127.0.0.1', port, path: '/api/x', ...options });
}

async function answerTo(sent: ReturnType<typeof request>, body = ''): Promise<{ head: IncomingMessage; body: Buffer }> {
  sent.end(body);
  const [head] = (await once(sent, 'response')) as [IncomingMessage];
  return { head, body: await buffer(head) };
}

const large = { text: 'x'.repeat(5_000) };

test('a long response is compressed for clients that accept it, and a short one never', async () => {
  const ask = await serving(async ({ url }) => Response.json(url.endsWith('long') ? large : { text: 'x' }));
  const packed = await answerTo(ask({ path: '/api/long', headers: { 'accept-encoding': 'gzip, br' } }));
  expect(packed.head.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'accept-encoding' });
  expect(JSON.parse(gunzipSync(packed.body).toString())).toEqual(large);
  for (const options of [{ path: '/api/long' }, { headers: { 'accept-encoding': 'gzip' } }]) {
    const { head, body } = await answerTo(ask(options));
    expect(head.headers['content-encoding']).toBeUndefined();
    expect(head.headers['content-length']).toBe(String(body.byteLength));
  }
});

test('a streamed file is compressed as it arrives', async () => {
  const text = 'line\n'.repeat(10_000);
  const ask = await serving(
    async () => new Response(new Blob([text]).stream(), { headers: { 'content-type': 'text/plain; charset=utf-8' } }),
  );
  const { head, body } = await answerTo(ask({ headers: { 'accept-encoding': 'gzip' } }));
  expect(head.headers['content-encoding']).toBe('gzip');
  expect(gunzipSync(body).toString()).toBe(text);
});

test('a response that fails closes its connection, also when the client has read nothing', async () => {
  let breakOff = () => {};
  let isOver = false;
  const ask = await serving(async ({ signal }) => {
    signal.addEventListener('abort', () => {
      isOver = true;
    });
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new Uint8Array(64_000_000));
        breakOff = () => controller.error(new DOMException('over', 'AbortError'));
      },
    });
    return new Response(body, { headers: { 'content-type': 'application/x-ndjson' } });
  });
  const sent = ask();
  sent.on('error', () => {});
  sent.end();
  const [head] = (await once(sent, 'response')) as [IncomingMessage];
  head.on('error', () => {});
  await once(head, 'readable');
  breakOff();
  await vi.waitUntil(() => isOver);
});

test('HEAD is answered without a body, and each cookie has its own header', async () => {
  const ask = await serving(async () => {
    const headers = new Headers({ 'content-type': 'application/json' });
    headers.append('set-cookie', 'a=1');
    headers.append('set-cookie', 'b=2');
    return new Response('{}', { headers });
  });
  const { head, body } = await answerTo(ask({ method: 'HEAD' }));
  expect(head.headers['set-cookie']).toEqual(['a=1', 'b=2']);
  expect(body.byteLength).toBe(0);
});

test('every response has headers against framing, sniffing and referrers', async () => {
  const ask = await serving(async () => new Response(null, { status: 303, headers: { location: '/' } }));
  expect((await answerTo(ask())).head.headers).toMatchObject({
    location: '/',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'same-origin',
    'x-frame-options': 'DENY',
    'cross-origin-opener-policy': 'same-origin',
  });
});

test('a body arrives byte for byte, also in pieces', async () => {
  const ask = await serving(async (request) => new Response(await new Response(request.body).text()));
  const sent = ask({ method: 'POST' });
  const pieces = Array.from({ length: 50 }, (_, index) => `${index}ü`.repeat(1_000));
  for (const piece of pieces) sent.write(piece);
  expect((await answerTo(sent)).body.toString()).toBe(pieces.join(''));
});

test('a body that its handler abandons leaves the connection usable for the next request', async () => {
  const ask = await serving(async ({ method, body }) => {
    if (method === 'POST') for await (const chunk of body ?? []) if (chunk.byteLength > 0) break;
    return Response.json({ method });
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  await answerTo(ask({ agent, method: 'POST', headers: { 'content-length': 1_000_000 } }), 'x'.repeat(1_000_000));
  const next = ask({ agent });
  const { head, body } = await answerTo(next);
  expect([head.statusCode, JSON.parse(body.toString()), next.reusedSocket]).toEqual([200, { method: 'GET' }, true]);
});

test('a client that disconnects aborts the request, fails its body and cancels its stream', async () => {
  const events: string[] = [];
  const ask = await serving(async (request) => {
    request.signal.addEventListener('abort', () => events.push('aborted'));
    if (request.body !== null) {
      const text = await new Response(request.body).text().catch(() => 'cut off');
      events.push(text);
      return new Response(text);
    }
    const body = new ReadableStream({
      start: (to) => to.enqueue(new Uint8Array(1)),
      cancel: () => void events.push('cancelled'),
    });
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  });
  const watching = ask();
  watching.end();
  await once(watching, 'response');
  watching.destroy();
  await vi.waitFor(() => expect(events.sort()).toEqual(['aborted', 'cancelled']));
  const sending = ask({ method: 'POST', headers: { 'content-length': '10' } });
  sending.on('error', () => {}).write('half');
  await vi.waitFor(() => expect(sending.socket?.bytesWritten).toBeGreaterThan(0));
  sending.destroy();
  await vi.waitFor(() => expect(events.sort()).toEqual(['aborted', 'aborted', 'cancelled', 'cut off']));
});

test('a stream that fails breaks the connection, so no client takes the part for the whole', async () => {
  const logged = vi.spyOn(console, 'error').mockImplementation(() => {});
  const ask = await serving(async () => {
    let count = 0;
    const pull = (to: ReadableStreamDefaultController) => {
      count += 1;
      if (count === 3) to.error(new DOMException('of no use', 'AbortError'));
      else to.enqueue(new Uint8Array(10));
    };
    return new Response(new ReadableStream({ pull }), { headers: { 'content-type': 'text/event-stream' } });
  });
  await expect(answerTo(ask())).rejects.toMatchObject({ code: 'ECONNRESET' });
  // The abort signal is delivered to its source.
  expect(logged).not.toHaveBeenCalled();
  logged.mockRestore();
});
