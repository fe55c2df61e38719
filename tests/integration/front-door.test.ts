import { once } from 'node:events';
import type { createServer, IncomingMessage, ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test, vi } from 'vitest';
import { frontDoor } from '../../lib/launch/front-door.mjs';

const TIMEOUT_MS = 300;

/** A front door whose handlers read a body to its end, unless the path tells them to answer without it. */
async function open(basePath = '', { isSlow = false } = {}) {
  const bodies: string[] = [];
  const server: ReturnType<typeof createServer> = frontDoor(
    async (request: IncomingMessage, response: ServerResponse) => {
      if (request.url?.startsWith('/api/broken')) throw new Error(`broken with ilc_${'x'.repeat(43)}`);
      if (isSlow) return void (request.url !== '/api/silent' && response.write('half of a response'));
      if (request.url !== '/api/refused') bodies.push(await text(request).catch(() => 'cut off'));
      response.end(Buffer.from(request.url === '/api/refused' ? 'not without a sign-in' : `taken: ${request.url}`));
    },
    {
      basePath,
      isAuthenticated: async ({ headers }) => headers.authorization === 'Bearer known',
      strangerTimeoutMs: TIMEOUT_MS,
    },
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { server, bodies, send: (request: string) => halfOf(port, request) };
}

interface Half {
  socket: Socket;
  /** Everything received, once the other side has closed. */
  closed: Promise<string>;
}

/** A connection with a partial request. */
function halfOf(port: number, request: string): Half {
  const socket = connect(port, '127.0.0.1');
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk;
  });
  socket.on('error', () => undefined);
  socket.write(request);
  return { socket, closed: new Promise((resolve) => socket.once('close', () => resolve(received))) };
}

const partialRequest = (path: string, headers: string) =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}Content-Length: 10\r\n\r\nhalf`;

test.each([
  ['without a credential', ''],
  ['with a wrong credential', 'Authorization: Bearer guessed\r\n'],
])('a body that never ends is cut off %s', async (_how, headers) => {
  const { bodies, send } = await open();
  const answer = await send(partialRequest('/api/events', headers)).closed;
  expect(answer).toMatch(/^HTTP\/1\.1 408 /);
  expect(answer).toContain('"code":"malformed"');
  await expect.poll(() => bodies).toEqual(['cut off']);
});

test('an endless chunked body is cut off', async () => {
  const { send } = await open();
  const { socket, closed } = send('POST /api/events HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n');
  // After the turn's reads: writing to a closed connection would discard the response.
  const drip = setInterval(() => setImmediate(() => socket.write('1\r\nx\r\n')), 20);
  onTestFinished(() => clearInterval(drip));
  expect(await closed).toMatch(/^HTTP\/1\.1 408 /);
});

test('the connection of a request answered without its body does not stay open for the body', async () => {
  const { send } = await open();
  for (const headers of ['', 'Authorization: Bearer known\r\n']) {
    expect(await send(partialRequest('/api/refused', headers)).closed).toContain('not without a sign-in');
  }
});

test('a kept connection gets an answer to a malformed request', async () => {
  const { send } = await open();
  const first = 'GET /api/refused HTTP/1.1\r\nHost: localhost\r\n\r\n';
  const { socket, closed } = send(first);
  await once(socket, 'data');
  socket.write('no request\r\n\r\n');
  expect([...(await closed).matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(['200', '400']);
});

test('a refusal is never written into the middle of a response', async () => {
  const { socket, closed } = (await open('', { isSlow: true })).send(
    'GET /api/slow HTTP/1.1\r\nHost: localhost\r\n\r\n',
  );
  await once(socket, 'data');
  socket.write('no request\r\n\r\n');
  expect(await closed).not.toContain('HTTP/1.1 400');
});

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;

test.each(['no request\r\n\r\n', 'CONNECT x:1 HTTP/1.1\r\nHost: localhost\r\n\r\n'])(
  'closes the connection on %j while several responses are pending',
  async (refused) => {
    const { send } = await open('', { isSlow: true });
    for (const first of ['/api/slow', '/api/silent']) {
      expect(await send(get(first) + get('/api/silent') + refused).closed).not.toMatch(/HTTP\/1\.1 4/);
    }
  },
);

test('a CONNECT after a request does not get the request’s response', async () => {
  const { send } = await open('', { isSlow: true });
  const answer = await send(`${get('/api/silent')}CONNECT x:1 HTTP/1.1\r\nHost: localhost\r\n\r\n`).closed;
  expect(answer).toBe('');
});

test('a failed handler is logged without query and secrets', async () => {
  const log = vi.spyOn(console, 'error').mockImplementation(() => {});
  onTestFinished(() => log.mockRestore());
  const stderr = vi.spyOn(process.stderr, 'write');
  onTestFinished(() => stderr.mockRestore());
  const { send } = await open();
  const { socket, closed } = send(get('/api/broken?token=a-token-of-the-address'));
  expect(await closed).toMatch(/^HTTP\/1\.1 500 /);
  socket.destroy();
  const logged = JSON.stringify([log.mock.calls, stderr.mock.calls]);
  expect(logged).toContain('GET /api/broken failed: Error: broken with ilc_…');
  expect(logged).not.toMatch(/a-token-of-the-address|xxx/);
});

test('a request with a credential gets more time for its body', async () => {
  const { bodies, send } = await open();
  const { socket, closed } = send(
    partialRequest('/api/events', 'Connection: close\r\nAuthorization: Bearer known\r\n'),
  );
  // As long as an anonymous request that arrived together with it.
  await send(partialRequest('/api/events', '')).closed;
  await send(partialRequest('/api/events', '')).closed;
  await expect.poll(() => bodies).toEqual(['cut off', 'cut off']);
  socket.write(' body!');
  expect(await closed).toMatch(/^HTTP\/1\.1 200 [\s\S]*taken/);
  expect(bodies).toHaveLength(3);
});

test.each([
  ['a body', 'POST', 'Content-Length: 5\r\n', ['200', '100', '200']],
  ['no body', 'GET', '', ['200', '200']],
])('answers pipelined requests with %s that expect 100 Continue in order', async (_what, method, length, statuses) => {
  const { send } = await open();
  const first = 'POST /api/first HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nfirst';
  const expects = `${method} /api/second HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: 100-continue\r\n${length}\r\n`;
  const { socket, closed } = send(first + expects);
  await once(socket, 'data');
  if (length !== '') socket.write('again');
  const lines = (await closed).split('\r\n');
  expect(lines.flatMap((line) => /^(?:taken: \S+)?HTTP\/1\.1 (\d+)/.exec(line)?.[1] ?? [])).toEqual(statuses);
  expect(lines.at(-1)).toBe('taken: /api/second');
});

test('a page refuses a request body before reading it', async () => {
  const { bodies, send } = await open();
  for (const path of ['/', '/sessions/s1', '/apiary', '/sign-inx']) {
    expect(await send(partialRequest(path, '')).closed).toMatch(
      /^HTTP\/1\.1 405 [\s\S]*"Pages accept GET and HEAD without a body\./,
    );
  }
  expect(bodies).toEqual([]);
});

test('a page refuses an address that is too long, which the API accepts', async () => {
  const { send } = await open();
  const ask = (path: string) =>
    send(`GET ${path}?q=${'x'.repeat(8_000)} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`).closed;
  expect(await ask('/sessions/s1')).toMatch(/^HTTP\/1\.1 414 [\s\S]*"too_large"/);
  expect(await ask('/api/events')).toMatch(/^HTTP\/1\.1 200 /);
});

test('endless headers are cut off', async () => {
  const { send } = await open();
  expect(await send('GET /api/events HTTP/1.1\r\nHost: localhost\r\n').closed).toMatch(/^HTTP\/1\.1 408 /);
});

test('a request that arrived while the process was suspended is answered', async () => {
  const { server, send } = await open();
  const { socket, closed } = send('');
  await once(server, 'connection');
  socket.write('GET /api/refused HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
  // Longer than the request timeout and Node's check of it.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, TIMEOUT_MS + 1_200);
  expect(await closed).toMatch(/^HTTP\/1\.1 200 /);
});

test.each([
  ['/tools/il/api/x?q=1', '/api/x?q=1'],
  ['/tools/il', '/'],
  ['/tools/il/', '/'],
  ['/tools/il?q=/tools/il', '/?q=/tools/il'],
  ['/tools/il/tools/il', '/tools/il'],
  ['/tools/./x/../il/settings', '/settings'],
])('under a base path, %j maps to %j', async (path, inside) => {
  const { send } = await open('/tools/il');
  const answer = await send(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`).closed;
  expect(answer.endsWith(`\r\n\r\ntaken: ${inside}`)).toBe(true);
});

test.each([
  ['GET', '/'],
  ['GET', '/api/x'],
  ['POST', '/api/x'],
  ['GET', '/tools'],
  ['GET', '/tools/ilx'],
  ['GET', '/Tools/il'],
  ['GET', '/tools%2Fil'],
  ['GET', '/tools/il/..'],
  ['GET', '/tools/il/../api/x'],
  ['GET', '/tools/il/%2E%2e/api/x'],
  ['GET', '/tools/il\\..\\api\\x'],
  ['GET', '//host/tools/il'],
])('under a base path, %s %j is not found', async (method, path) => {
  const { send } = await open('/tools/il');
  const answer = await send(`${method} ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`).closed;
  expect(answer).toMatch(/^HTTP\/1\.1 404 /);
  expect(answer).toContain('"code":"not_found"');
});

test('every request has the address of its connection last in X-Forwarded-For', async () => {
  const seen: unknown[] = [];
  const server = frontDoor(async ({ headers }: IncomingMessage, response: ServerResponse) => {
    seen.push(headers['x-forwarded-for']);
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  await fetch(url);
  await fetch(url, { headers: { 'x-forwarded-for': '198.51.100.9' } });
  expect(seen).toEqual(['127.0.0.1', '198.51.100.9, 127.0.0.1']);
});

test.each([
  ['POST', { 'next-action': 'abc' }, 404],
  ['POST', { 'next-action': '4'.repeat(42) }, 404],
  ['GET', { 'next-action': 'abc' }, 404],
  ['POST', {}, 405],
  ['OPTIONS', {}, 405],
  ['GET', { rsc: '1' }, 200],
  ['HEAD', {}, 200],
])('a page request with %s and %j is answered %i, and others never reach Next', async (method, headers, status) => {
  const { send } = await open();
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const answer = await send(`${method} / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${lines.join('')}\r\n`)
    .closed;
  expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  expect(/"code":/.test(answer)).toBe(status !== 200);
});

test.each([
  ['over TLS', { host: 'interlude.example.com', 'x-forwarded-proto': 'https' }, true],
  ['over TLS with a port', { host: 'interlude.example.com:8443', 'x-forwarded-proto': 'https, http' }, true],
  ['over TLS, when refused', { host: 'interlude.example.com', 'x-forwarded-proto': 'https', 'next-action': 'x' }, true],
  ['without TLS', { host: 'interlude.example.com', 'x-forwarded-proto': 'http' }, false],
  ['without a proxy', { host: 'interlude.example.com' }, false],
  ['over TLS on loopback', { host: 'localhost:4319', 'x-forwarded-proto': 'https' }, false],
  ['over TLS with a local name', { host: 'interlude-1.localhost:4319', 'x-forwarded-proto': 'https' }, false],
  ['over TLS with an IPv4 loopback address', { host: '127.0.0.1:4319', 'x-forwarded-proto': 'https' }, false],
  ['over TLS with the IPv6 loopback address', { host: '[::1]:4319', 'x-forwarded-proto': 'https' }, false],
])('a response to a request %s has HSTS only over TLS on a public name', async (_, headers, isStrict) => {
  const { send } = await open();
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const answer = await send(`GET / HTTP/1.1\r\nConnection: close\r\n${lines.join('')}\r\n`).closed;
  const [, value] = /strict-transport-security: (.*)\r\n/i.exec(answer) ?? [];
  expect(value).toBe(isStrict ? 'max-age=31536000' : undefined);
});

test('drops headers that make Next fail: a range, and an unreadable router state', async () => {
  const seen: unknown[] = [];
  const server = frontDoor(async ({ headers }: IncomingMessage, response: ServerResponse) => {
    seen.push([headers.range, headers['next-router-state-tree']]);
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const good = encodeURIComponent(JSON.stringify(['', { children: ['__PAGE__', {}] }]));
  for (const state of ['garbage', '%', '[]', encodeURIComponent('["",{},null,"x"]'), good]) {
    const headers = { range: 'bytes=5-1', 'next-router-state-tree': state };
    await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/embed.js`, { headers });
  }
  expect(seen).toEqual([...Array(4).fill([undefined, undefined]), [undefined, good]]);
});
