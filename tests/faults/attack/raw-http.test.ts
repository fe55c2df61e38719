import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { scaled } from '@/tests/support/timeouts';
import { type Random, seededRandom } from '../../support/random';
import { type RawAnswer, rawAnswers, rawRequest } from '../../support/raw-request';
import { apiPaths, liveServer, type ServerTarget } from '../../support/server-target';

/**
 * Sends bytes that no client library produces over bare sockets to the real server. Each gets a protocol error or a
 * valid response, the server stays up, and rejected input stores nothing.
 */
const REQUESTS = scaled(500, 1_000_000);

let server: ServerTarget;
let port: number;
let auth: string;
let host: string;
beforeAll(async () => {
  server = await liveServer();
  port = Number(new URL(server.origin).port);
  host = `Host: 127.0.0.1:${port}\r\n`;
  auth = `${host}Authorization: Bearer ${server.token}\r\nConnection: close\r\n`;
});
afterAll(() => server.close());

const get = (path: string, headers = '') => rawRequest(port, `GET ${path} HTTP/1.1\r\n${auth}${headers}\r\n`);

function post(body: string | Uint8Array, headers = ''): Promise<RawAnswer> {
  const bytes = Buffer.from(body);
  const head = `POST /api/v1/events HTTP/1.1\r\n${auth}Content-Type: application/json\r\n`;
  return rawRequest(port, `${head}Content-Length: ${bytes.length}\r\n${headers}\r\n`, bytes);
}

/** A valid request except for the given part. */
function batch({ producer = '{"id":"p","epoch":1}', seq = '1', rest = '' } = {}): string {
  const log = '{"level":"info","message":"m"}';
  return `{"producer":${producer},"records":[{"seq":${seq},"kind":"log","agentId":"a","occurredAt":1,"log":${log}}]${rest}}`;
}

describe('the server rejects without storing anything:', () => {
  const method =
    (name: string, path = '/api/v1/sessions') =>
    () =>
      rawRequest(port, `${name} ${path} HTTP/1.1\r\n${auth}Content-Length: 0\r\n\r\n`);
  const cases: [string, number, string, () => Promise<RawAnswer>][] = [
    ['bytes that aren’t HTTP', 400, 'malformed', () => rawRequest(port, '\0\xff garbage\r\n\r\n')],
    ['the preface of HTTP/2', 400, 'malformed', () => rawRequest(port, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')],
    ['a TLS handshake', 400, 'malformed', () => rawRequest(port, Buffer.from('16030100a5010000a1', 'hex'))],
    ['an unknown method', 400, 'malformed', method('FOO')],
    ['TRACE', 405, 'method_not_allowed', method('TRACE')],
    ['PROPFIND', 405, 'method_not_allowed', method('PROPFIND')],
    ['CONNECT', 405, 'method_not_allowed', method('CONNECT', 'example.com:443')],
    ['POST to a health check', 405, 'method_not_allowed', method('POST', '/healthz')],
    ['DELETE of the readiness', 405, 'method_not_allowed', method('DELETE', '/readyz')],
    ['PUT of a sign-in', 405, 'method_not_allowed', method('PUT', '/sign-in')],
    ['a request for everything', 400, 'malformed', method('OPTIONS', '*')],
    ['a request meant for a proxy', 400, 'malformed', () => get('http://example.com/api/v1/sessions')],
    ['no Host', 400, 'malformed', () => rawRequest(port, `GET /api/v1/sessions HTTP/1.1\r\nConnection: close\r\n\r\n`)],
    ['two Hosts', 400, 'malformed', () => get('/api/v1/sessions', 'Host: example.com\r\n')],
    ['a header of 20 kB', 431, 'too_large', () => get('/api/v1/sessions', `X-Long: ${'x'.repeat(20_000)}\r\n`)],
    ['an address of 20 kB', 431, 'too_large', () => get(`/api/v1/sessions/${'x'.repeat(20_000)}`)],
    ['an expectation', 417, 'malformed', () => post('{}', 'Expect: miracles\r\n')],
    ['a path with half an escape', 400, 'malformed', () => get('/api/v1/sessions/%')],
    ['a path that is no UTF-8', 400, 'malformed', () => get('/api/v1/sessions/%ff/transcript')],
    ['a path with half a surrogate pair', 400, 'malformed', () => get('/api/v1/agents/%ED%A0%80/logs')],
    ['a page whose path is no UTF-8', 400, 'malformed', () => get('/sessions/%ff')],
    ['a NUL as an id', 404, 'not_found', () => get('/api/v1/sessions/%00')],
    ['an id of a prototype', 404, 'not_found', () => get('/api/v1/sessions/__proto__')],
    ['an id that is a path', 404, 'not_found', () => get('/api/v1/agents/..%2f..%2fetc%2fpasswd')],
    ['two lengths', 400, 'malformed', () => post('{}', 'Content-Length: 3\r\n')],
    ['a length and chunks', 400, 'malformed', () => post('0\r\n\r\n', 'Transfer-Encoding: chunked\r\n')],
    [
      'a chunk without a size',
      400,
      'malformed',
      () => rawRequest(port, `POST /api/v1/events HTTP/1.1\r\n${auth}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n`),
    ],
    ['a number beyond all numbers', 400, 'malformed', () => post(batch({ seq: '1e400' }))],
    ['a number that is none', 400, 'malformed', () => post(batch({ seq: 'NaN' }))],
    ['a number no double holds', 400, 'malformed', () => post(batch({ seq: '9007199254740993' }))],
    ['an epoch before time', 400, 'malformed', () => post(batch({ producer: '{"id":"p","epoch":-1}' }))],
    ['a producer by prototype', 400, 'malformed', () => post(`{"__proto__":${batch()}}`)],
    [
      'a producer id from the prototype',
      400,
      'malformed',
      () => post(batch({ producer: '{"__proto__":{"id":"p"},"epoch":1}' })),
    ],
    ['a producer twice, the second none', 400, 'malformed', () => post(batch({ rest: ',"producer":7' }))],
    ['a NUL in an id', 400, 'malformed', () => post(batch({ producer: '{"id":"a\\u0000b","epoch":1}' }))],
    ['half a surrogate pair', 400, 'malformed', () => post(batch({ producer: '{"id":"\\ud800","epoch":1}' }))],
    ['a very long id', 400, 'malformed', () => post(batch({ producer: `{"id":"${'x'.repeat(257)}","epoch":1}` }))],
    ['a hundred thousand brackets', 400, 'malformed', () => post('['.repeat(100_000))],
    ['bytes that are no UTF-8', 400, 'malformed', () => post(Buffer.from(batch().replace('"m"', '"\xff"'), 'latin1'))],
    ['UTF-16', 400, 'malformed', () => post(Buffer.from(`\ufeff${batch()}`, 'utf16le'))],
    ['a body that isn’t gzip', 400, 'malformed', () => post(batch(), 'Content-Encoding: gzip\r\n')],
    ['half of a gzip', 400, 'malformed', () => post(gzipSync(batch()).subarray(0, 40), 'Content-Encoding: gzip\r\n')],
    ['gzip in gzip', 415, 'unsupported_encoding', () => post(gzipSync(batch()), 'Content-Encoding: gzip, gzip\r\n')],
    ['a bomb', 413, 'too_large', () => post(gzipSync(Buffer.alloc(64 << 20, 32)), 'Content-Encoding: gzip\r\n')],
    ['a body of 9 MiB', 413, 'too_large', () => post(Buffer.alloc(9 << 20, 32))],
    ['a topic of a prototype', 400, 'invalid_argument', () => get('/api/v1/stream?topic=__proto__')],
    ['a place before the beginning', 400, 'invalid_argument', () => get('/api/v1/stream?topic=fleet&after=-1')],
  ];
  test.each(cases)('%s', async (_what, status, code, send) => {
    const before = await server.dump();
    const response = await send();
    expect(response).toMatchObject({
      status,
      headers: { 'content-type': expect.stringMatching(/^application\/json/) },
    });
    expect(JSON.parse(response.body)).toEqual({
      error: expect.objectContaining({ code, message: expect.stringMatching(/^\S.{10,}\.$/) }),
    });
    expect(await server.dump()).toEqual(before);
    expect((await get('/readyz')).status).toBe(200);
  });
});

test('the server handles an unsupported upgrade as an ordinary request', async () => {
  const head = `${auth.replace('close', 'close, Upgrade')}Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n`;
  const response = await rawRequest(port, `DELETE /api/v1/sessions HTTP/1.1\r\n${head}`);
  expect(response.status).toBe(405);
});

describe('the server answers ambiguous framing once:', () => {
  const hidden = () => `GET /api/v1/sessions HTTP/1.1\r\n${auth}\r\n`;
  const open = () => auth.replace('Connection: close\r\n', '');
  const head = (headers: string, method = 'POST', path = '/api/v1/events') =>
    `${method} ${path} HTTP/1.1\r\n${open()}${headers}\r\n`;
  const chunked = 'Transfer-Encoding: chunked\r\n';
  const cases: [string, number[], () => string][] = [
    ['a length, then chunks', [400], () => `${head(`Content-Length: 6\r\n${chunked}`)}0\r\n\r\nX${hidden()}`],
    ['chunks, then a length', [400], () => `${head(`${chunked}Content-Length: 4\r\n`)}5c\r\n${hidden()}\r\n0\r\n\r\n`],
    ['two lengths that differ', [400], () => `${head('Content-Length: 0\r\nContent-Length: 9\r\n')}${hidden()}`],
    ['a list of lengths', [400], () => `${head('Content-Length: 0, 9\r\n')}${hidden()}`],
    ['a length with a sign', [400], () => `${head('Content-Length: +0\r\n')}${hidden()}`],
    ['a length in hexadecimal', [400], () => `${head('Content-Length: 0x0\r\n')}${hidden()}`],
    ['a length below zero', [400], () => `${head('Content-Length: -1\r\n')}${hidden()}`],
    ['a space before the colon', [400], () => `${head('Content-Length : 0\r\n')}${hidden()}`],
    ['a folded header', [400], () => `${head('Transfer-Encoding:\r\n chunked\r\n')}0\r\n\r\n${hidden()}`],
    ['chunks twice', [400], () => `${head('Transfer-Encoding: chunked, chunked\r\n')}0\r\n\r\n${hidden()}`],
    ['another transfer coding', [400], () => `${head('Transfer-Encoding: xchunked\r\n')}0\r\n\r\n${hidden()}`],
    [
      'chunked after another coding',
      [400],
      () => `${head('Transfer-Encoding: chunked, identity\r\n')}0\r\n\r\n${hidden()}`,
    ],
    ['a chunk of a size with a sign', [400], () => `${head(chunked)}+0\r\n\r\n${hidden()}`],
    ['a chunk of a size too large', [400], () => `${head(chunked)}ffffffffffffffffff\r\n\r\n${hidden()}`],
    ['a line that ends in a line feed', [400], () => head('X: y\n').replace('\r\n', '\n') + hidden()],
    [
      'a header that ends in a carriage return',
      [400],
      () => `${head('X: y\rTransfer-Encoding: chunked\r\n')}${hidden()}`,
    ],
    ['a NUL in a header', [400], () => `${head('X: \0\r\n')}${hidden()}`],
    ['a header without a name', [400], () => `${head(': chunked\r\n')}${hidden()}`],
    ['a header without a colon', [400], () => `${head('Transfer-Encoding chunked\r\n')}${hidden()}`],
    ['a method in small letters', [400], () => `${head('', 'get', '/api/v1/me')}${hidden()}`],
    ['a tab behind the method', [400], () => head('', 'GET', '/api/v1/me').replace('GET ', 'GET\t') + hidden()],
    ['a space within the path', [400], () => `${head('', 'GET', '/api/v1/me x')}${hidden()}`],
    ['a version of its own', [400], () => head('', 'GET', '/api/v1/me').replace('HTTP/1.1', 'HTTP/1.9') + hidden()],
    ['no version', [400], () => `GET /api/v1/me\r\n${hidden()}`],
    ['a thousand headers', [200], () => `${head('X: y\r\n'.repeat(1_000), 'GET', '/api/v1/me')}`.replace(open(), auth)],
    ['bytes after the body', [400], () => `${head('Content-Length: 2\r\n')}{}\0garbage\r\n\r\n`],
    ['two requests at once', [200, 200], () => `${head('', 'GET', '/api/v1/me')}${hidden()}`],
    [
      'a request in another request’s body',
      [400],
      () => `${head(`Connection: close\r\nContent-Length: ${hidden().length}\r\n`)}${hidden()}`,
    ],
    [
      'a request in the body of a GET',
      [200],
      () => `${head(`Connection: close\r\nContent-Length: ${hidden().length}\r\n`, 'GET', '/api/v1/me')}${hidden()}`,
    ],
    [
      'a request after an upgrade',
      [200],
      () => `${head('Connection: Upgrade, close\r\nUpgrade: h2c\r\n', 'GET', '/api/v1/me')}${hidden()}`,
    ],
  ];
  test.each(cases)('%s', async (_what, statuses, message) => {
    const before = await server.dump();
    const came = (await rawAnswers(port, message())).toString('latin1');
    expect([...came.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))).toEqual(statuses);
    expect(came.includes('\r\n\r\n{"position"') ? 'lists sessions' : '').toBe(
      statuses.length > 1 && statuses[1] === 200 ? 'lists sessions' : '',
    );
    expect({ ...(await server.dump()), refusals: [] }).toEqual({ ...before, refusals: [] });
  });
});

describe('a path with alternative encoding', () => {
  const TITLE = 'canary-of-a-session-title';
  beforeAll(async () => {
    const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' };
    const send = (path: string, method: string, body: object) =>
      server.send(`/api/v1${path}`, { method, headers, body: JSON.stringify(body) });
    const record = { seq: 1, kind: 'status', agentId: 'paths', sessionId: 'paths', occurredAt: 1, status: {} };
    const answers = [
      await send('/events', 'POST', { producer: { id: 'paths', epoch: 1 }, records: [record] }),
      await send('/sessions/paths/arrangement', 'PUT', { name: TITLE }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  });

  /** Each reaches the session list, or a page that shows it, if a check forgets decoding or normalization. */
  const PATHS = [
    ...['/api/v1/sessions/', '/api//v1/sessions', '//api/v1/sessions', '/api/v1//sessions', '/API/v1/sessions'],
    ...[
      '/api/v1/sessions;a=b',
      '/api/v1/sessions.',
      '/api/v1/sessions.json',
      '/api/v1/sessions%20',
      '/api/v1/sessions%00',
    ],
    ...['/api/v1/./sessions', '/api/v1/x/../sessions', '/api/v1/%2e/sessions', '/api/v1/x/%2e%2e/sessions'],
    ...['/api/v1/x/%252e%252e/sessions', '/api/v1/x%2f..%2fsessions', '/api%2fv1%2fsessions', '/%61pi/v1/sessions'],
    ...[
      '/api\\v1\\sessions',
      '/api/v1/x\\..\\sessions',
      '/healthz/../api/v1/sessions',
      '/healthz/%2e%2e/api/v1/sessions',
    ],
    ...['/embed/../api/v1/sessions', '/embed.js/../api/v1/sessions', '/icon.svg/../api/v1/sessions'],
    ...['/_next/static/../../api/v1/sessions', '/_next/static/%2e%2e/%2e%2e/api/v1/sessions', '/_next/../'],
    ...[
      '/_next/image?url=%2Fapi%2Fv1%2Fsessions&w=640&q=75',
      '/_next/data/x/index.json',
      '/?_rsc=1',
      '/index',
      '/index.rsc',
    ],
    ...[
      '/signed-out/..',
      '/signed-out/%2e%2e/',
      '/signed-out/../',
      '/embed/fleet/../..',
      '/embed/%2e%2e/',
      '/embed/..;/',
    ],
    ...['/signed-out%2f..', '/favicon.ico/..', '/icon.svg/%2e%2e/', '/./', '/%2e/', '/;', '/%3b', '//', '/\\', '/%5c'],
    ...['/sessions/paths;a', '/sessions/paths/', '/sessions/x/../paths', '/sessions/x/%2e%2e/paths', '/SESSIONS/paths'],
    ...[
      '/metrics/',
      '//metrics',
      '/METRICS',
      '/metrics;',
      '/healthz/../metrics',
      '/%6detrics',
      '/api/v1/../../metrics',
    ],
  ];

  test.each(PATHS)('shows nothing without a credential: %s', async (path) => {
    const visits = ['', 'RSC: 1\r\n', 'X-Middleware-Subrequest: proxy:proxy:proxy:proxy:proxy\r\n', 'X-Nonce: x\r\n'];
    for (const more of visits) {
      const response = await rawRequest(port, `GET ${path} HTTP/1.1\r\n${host}Connection: close\r\n${more}\r\n`);
      expect([more, response.status < 500 && response.status > 0]).toEqual([more, true]);
      expect([more, response.body.includes(TITLE), response.body.includes('interlude_')]).toEqual([more, false, false]);
      const to = response.headers.location;
      // redirects stay on this host
      if (to !== undefined)
        expect([more, new URL(to, server.origin).host]).toEqual([more, new URL(server.origin).host]);
    }
  });

  test.each(PATHS)('never fails with a credential: %s', async (path) => {
    expect((await get(path)).status).toBeLessThan(500);
  });
});

test('the server rejects unknown methods on every path', async () => {
  for (const path of [
    ...apiPaths(),
    '/',
    '/inbox',
    '/sessions/s',
    '/embed/fleet',
    '/signed-out',
    '/metrics',
    '/icon.svg',
  ]) {
    for (const method of ['TRACE', 'PROPFIND', 'SEARCH', 'M-SEARCH', 'QUERY', 'get', 'Post', 'G\u0001T']) {
      const { status } = await rawRequest(port, `${method} ${path} HTTP/1.1\r\n${auth}\r\n`);
      expect([method, path, [400, 405].includes(status)]).toEqual([method, path, true]);
    }
  }
});

test('the server answers random requests without an internal error and stores nothing', async () => {
  const random = seededRandom('requests');
  const pages = ['/', '/sign-in', '/sign-out', '/healthz', '/readyz', '/sessions/s', '/agents/a'];
  // actions without a body succeed
  const paths = [...apiPaths().filter((path) => !path.endsWith('/sign-in-codes')), ...pages];
  // refusals are audited
  const stored = async () => ({ ...(await server.dump()), audit: [], refusals: [] });
  const before = await stored();
  for (let count = 0; count < REQUESTS; count += 20) {
    const sent = Array.from({ length: 20 }, () => randomRequest(random, paths));
    const answers = await Promise.all(sent.map((parts) => rawRequest(port, ...parts)));
    for (const [index, { status, body, headers }] of answers.entries()) {
      const what = Buffer.concat((sent[index] ?? []).map((part) => Buffer.from(part)))
        .toString('latin1')
        .slice(0, 400);
      expect(status, what).not.toBe(500);
      expect(status, what).toBeGreaterThan(0);
      const isWire = status >= 400 && !what.startsWith('HEAD ');
      if (isWire) expect(JSON.parse(body), what).toMatchObject({ error: { code: expect.any(String) } });
      if (isWire) expect(headers['content-type'], what).toMatch(/^application\/json/);
    }
  }
  expect(await stored()).toEqual(before);
  expect((await get('/readyz')).status).toBe(200);
});

/** A random request of valid and invalid parts. Never accepted, because its records start at 2. */
function randomRequest(random: Random, paths: string[]): (string | Uint8Array)[] {
  const noise = (length: number) => Uint8Array.from({ length }, () => random.between(0, 255));
  const junk = () =>
    Buffer.from(noise(random.between(1, 12)))
      .toString('hex')
      .replace(/(..)/g, '%$1');
  const anyMethod = random.pick([
    'GET',
    'HEAD',
    'POST',
    'PUT',
    'PATCH',
    'DELETE',
    'OPTIONS',
    'QUERY',
    'LINK',
    'get',
    'G T',
  ]);
  const path = random.pick(paths).replace(/\bid\b/, () => random.pick([junk(), 'x', '%2e%2e', 'a%00', '%F0%9F%90%8B']));
  // With the token, the commands route opens an endless stream.
  const method = path.endsWith('/commands') && /^(GET|HEAD)$/i.test(anyMethod) ? 'PUT' : anyMethod;
  const query = random.pick(['', '', `?${junk()}`, `?limit=${junk()}`, '?before=1e9&after=-0', '?topic=nothing']);
  const body = random.pick<() => Uint8Array>([
    () => new Uint8Array(0),
    () => noise(random.between(1, 300)),
    () => Buffer.from(batch({ seq: '2' })),
    () => gzipSync(batch({ seq: '2' })),
    () => Buffer.from(batch({ seq: '2' }).slice(0, random.between(1, 100))),
  ])();
  const headers = [
    random.pick([host, host, 'Host: example.com\r\n', '']),
    random.pick([
      `Authorization: Bearer ${server.token}\r\n`,
      'Authorization: Basic eDp5\r\n',
      'Cookie: interlude=1.x\r\n',
      '',
    ]),
    random.pick(['Content-Type: application/json\r\n', 'Content-Type: text/plain\r\n', '']),
    random.pick(['Content-Encoding: gzip\r\n', 'Content-Encoding: br\r\n', '', '']),
    random.pick([
      `Last-Event-ID: ${random.between(-9, 9)}\r\n`,
      `X-Noise: ${junk()}\r\n`,
      'Transfer-Encoding: gzip\r\n',
      '',
      '',
    ]),
  ];
  const close = 'Connection: close\r\n';
  return [
    `${method} ${path}${query} HTTP/1.1\r\n${headers.join('')}Content-Length: ${body.length}\r\n${close}\r\n`,
    body,
  ];
}
