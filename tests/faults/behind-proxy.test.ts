import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect } from 'node:http2';
import { type RequestOptions, request } from 'node:https';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { MAX_RECORD_BYTES, MAX_REQUEST_BYTES } from '@interlude/protocol/limits';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openDatabase } from '@/db/client';
import { audit } from '../support/audit';
import { FrameReader } from '../support/frames';
import { marker } from '../support/ingest-target';
import { ensureLibsqlServer, startLibsqlServer } from '../support/libsql-server.mjs';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { ensureDebianProgram } from '../support/programs.mjs';
import {
  type Certificate,
  ownCertificate,
  PUBLIC_NAME,
  type RealProxy,
  startCaddy,
  startNginx,
} from '../support/real-proxies';
import { reservePort } from '../support/reserve-port.mjs';
import { pause, startScene, untilUnderLoad } from '../support/scene';
import { expectWithin } from '../support/timing';

/** Two instances on one libSQL server behind real TLS proxies with the configuration of deploy/. */
const TOKEN = 'a-token-for-tests-0123456789';
const libsqlServer = ensureLibsqlServer();
const PROXIES = [
  { name: 'nginx', found: ensureDebianProgram('nginx', 'nginx-light'), start: startNginx, foreign: 421 },
  // answers an unknown host name itself with an empty response
  { name: 'caddy', found: ensureDebianProgram('caddy'), start: startCaddy, foreign: 200 },
];

let libsql: Awaited<ReturnType<typeof startLibsqlServer>>;
let certificate: Certificate;
let instances: [LiveServer, LiveServer];

beforeAll(async () => {
  if ('missing' in libsqlServer || PROXIES.every(({ found }) => 'missing' in found)) return;
  // the certificate is self-signed; runners inherit this
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
  [libsql, certificate] = await Promise.all([startLibsqlServer(), ownCertificate()]);
  await (await openDatabase({ url: libsql.url, migrates: true })).close();
  const env = { INTERLUDE_DATABASE_URL: libsql.url, INTERLUDE_PUBLIC_URL: `https://${PUBLIC_NAME}` };
  instances = await Promise.all([startLiveServer({ token: TOKEN, env }), startLiveServer({ token: TOKEN, env })]);
});
afterAll(async () => {
  await Promise.all((instances ?? []).map((instance) => instance.stop()));
  await libsql?.stop();
  if (certificate !== undefined) await rm(certificate.folder, { recursive: true, force: true });
  delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
});

describe.each(PROXIES)('two instances behind $name', ({ name, found, start, foreign }) => {
  const missing = [libsqlServer, found].flatMap((one) => ('missing' in one ? [one.missing] : []));
  if (missing.length > 0) {
    test.skip(`not run: ${missing.join('; ')}`, () => {});
    return;
  }
  let proxy: RealProxy;
  let port: number;
  /** The proxy's local URL. */
  let url: string;
  const bearer = { authorization: `Bearer ${TOKEN}` };

  beforeAll(async () => {
    port = await reservePort();
    url = `https://127.0.0.1:${port}`;
    const behind = instances.map((instance) => new URL(instance.url).host) as [string, string];
    proxy = await start('program' in found ? found.program : '', { port, behind, certificate });
  });
  afterAll(() => proxy?.stop());

  /** Requests the public name, as browsers do. */
  const ask = (path: string, options: RequestOptions = {}, body = '') => {
    const host = `${PUBLIC_NAME}:${port}`;
    const headers = { host, ...options.headers };
    const where = { host: '127.0.0.1', port, path, servername: PUBLIC_NAME };
    return new Promise<{ status: number; headers: Record<string, unknown>; text: string }>((resolve, reject) => {
      const outgoing = request({ ...where, ...options, headers }, async (response) => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text: await text(response) });
      });
      outgoing.on('error', reject);
      outgoing.end(body);
    });
  };
  const post = (to: string, body: BodyInit, headers: Record<string, string> = {}) =>
    fetch(`${to}/api/v1/events`, {
      method: 'POST',
      headers: { ...bearer, 'content-type': 'application/json', ...headers },
      body,
    });
  const batch = (id: string, seqs: number[], epoch = 1) => ({
    producer: { id: `${name}-${id}`, epoch },
    records: seqs.map((seq) => marker(seq, { agentId: `${name}-${id}`, sessionId: `${name}-${id}` })),
  });
  const stream = async (id: string, headers: Record<string, string> = {}, after = '') => {
    const end = new AbortController();
    onTestFinished(() => end.abort());
    const address = `${url}/api/v1/stream?topic=session:${name}-${id}${after}`;
    const response = await fetch(address, { headers: { ...bearer, ...headers }, signal: end.signal });
    expect(response.status).toBe(200);
    return { reader: new FrameReader(response.body as ReadableStream<Uint8Array>), leave: () => end.abort() };
  };

  test('sets a Secure sign-in cookie and rejects cross-origin sign-ins', async () => {
    const form = (origin: string) => ({
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', origin },
    });
    const elsewhere = await ask('/sign-in', form('https://evil.example'), `token=${TOKEN}`);
    expect(elsewhere.status).toBe(403);
    const { status, headers } = await ask('/sign-in', form(`https://${PUBLIC_NAME}:${port}`), `token=${TOKEN}`);
    expect([status, headers.location]).toEqual([303, '/']);
    const [cookie = ''] = headers['set-cookie'] as string[];
    expect(cookie).toMatch(/^__Host-interlude=[^;]+;/);
    expect(cookie).toMatch(/; Secure/);
    const page = await ask('/', { headers: { cookie: cookie.split(';')[0] } });
    expect([page.status, page.text]).toEqual([200, expect.stringContaining('<html')]);
    expect((await ask('/')).headers.location).toContain('/signed-out');
  });

  test('rejects every other host name', async () => {
    const { status, text: answer } = await ask('/api/v1/sessions', { headers: { host: 'evil.example', ...bearer } });
    expect(status).toBe(foreign);
    if (foreign === 421) expect(JSON.parse(answer).error.code).toBe('misdirected_host');
    else expect(answer).toBe('');
  });

  test('accepts compressed and plain bodies up to the limit and rejects larger ones alike', async () => {
    const packed = new Uint8Array(gzipSync(JSON.stringify(batch('gzip', [1, 2, 3]))));
    const first = await post(url, packed, { 'content-encoding': 'gzip' });
    expect([first.status, await first.json()]).toEqual([200, expect.objectContaining({ ackedSeq: 3, accepted: 3 })]);
    const again = await post(url, packed, { 'content-encoding': 'gzip' });
    expect(await again.json()).toMatchObject({ ackedSeq: 3, accepted: 0, duplicates: 3 });
    const largest = await post(url, bodyOf(batch('large', []), MAX_REQUEST_BYTES));
    expect([largest.status, await largest.json()]).toEqual([
      200,
      expect.objectContaining({ accepted: 9, rejected: [] }),
    ]);
    const tooLarge = bodyOf(batch('larger', []), MAX_REQUEST_BYTES + 1);
    const [behind, direct] = await Promise.all([post(url, tooLarge), post(instances[0].url, tooLarge)]);
    expect([behind.status, await behind.json()]).toEqual([413, await direct.json()]);
  });

  test('forwards frames immediately and resumes a stream after its Last-Event-ID', async () => {
    await post(url, JSON.stringify(batch('frames', [1])));
    const { reader, leave } = await stream('frames', {}, '&after=0');
    const [before] = (await reader.until((all) => all.some(({ event }) => event === 'up-to-date'))).filter(isEvent);
    expect(before?.data.seq).toBe(1);
    // while the stream is open, from either instance
    for (const [index, instance] of instances.entries()) {
      await post(instance.url, JSON.stringify(batch('frames', [2 + index])));
      await reader.frame('session-event', 2 + index);
    }
    const last = reader.frames.filter(isEvent).at(-1);
    leave();
    await post(url, JSON.stringify(batch('frames', [4, 5])));
    const resumed = (await stream('frames', { 'last-event-id': String(last?.id) })).reader;
    expect((await resumed.frame('hello')).data.resume).toBe('ok');
    await resumed.frame('up-to-date');
    expect(resumed.frames.filter(isEvent).map(({ data }) => data.seq)).toEqual([4, 5]);
  });

  test('forwards frames over HTTP/2', async () => {
    const session = connect(url, { rejectUnauthorized: false });
    onTestFinished(() => session.close());
    const outgoing = session.request({ ':path': `/api/v1/stream?topic=session:${name}-h2`, ...bearer });
    onTestFinished(() => outgoing.close());
    let came = '';
    outgoing.setEncoding('utf8').on('data', (chunk) => {
      came += chunk;
    });
    await expect.poll(() => came).toContain('event: up-to-date');
    await post(url, JSON.stringify(batch('h2', [1])));
    await expect.poll(() => came).toContain('event: session-event');
    expect(session.alpnProtocol).toBe('h2');
  });

  test('serves a page’s scripts from either instance while two versions run', async () => {
    const own = /\/_next\/static\/[^"]+\.js/.exec((await ask('/signed-out')).text)?.[0] ?? 'none';
    const others = '/_next/static/chunks/of-another-version.js';
    const otherPort = await reservePort();
    // an instance with only this script
    const other = createServer(({ url: path }, response) => {
      response.writeHead(path === others || path === '/readyz' ? 200 : 404).end(path);
    }).listen(otherPort, '127.0.0.1');
    await once(other, 'listening');
    onTestFinished(() => void other.close());
    const hosts = [new URL(instances[0].url).host, `127.0.0.1:${otherPort}`] as [string, string];
    for (const behind of [hosts, hosts.toReversed() as [string, string]]) {
      const at = await reservePort();
      const between = await start('program' in found ? found.program : '', { port: at, behind, certificate });
      try {
        for (let turn = 0; turn < 4; turn += 1) {
          expect(await ask(others, { port: at })).toMatchObject({ status: 200, text: others });
          const script = await ask(own, { port: at });
          expect([script.status, script.headers['content-type']]).toEqual([200, expect.stringMatching(/javascript/)]);
          expect((await ask('/_next/static/chunks/of-neither.js', { port: at })).status).toBe(404);
        }
      } finally {
        await between.stop();
      }
    }
  });

  test('loses nothing and rejects no request during a rolling restart', async () => {
    const front = { ...instances[0], url, token: TOKEN };
    const scene = await startScene(`behind ${name}`, front, [`${name}-agent`]);
    const refused: string[] = [];
    let isAsking = true;
    const requests = (async () => {
      while (isAsking) {
        const response = await fetch(`${url}/api/v1/sessions`, { headers: bearer });
        const text = await response.text();
        if (response.status !== 200) refused.push(`${response.status} ${text}`);
        await pause(10);
      }
    })();
    for (const instance of instances) {
      await untilUnderLoad(scene);
      const { exitCode, afterMs } = await instance.signal('SIGTERM');
      process.stdout.write(`${name}: an instance stopped after ${Math.round(afterMs)} ms\n`);
      expect(exitCode).toBe(143);
      expectWithin(afterMs, 2_000);
      // the other instance serves everything
      await untilUnderLoad(scene);
      await instance.restart();
    }
    await untilUnderLoad(scene);
    isAsking = false;
    await requests;
    expect(refused).toEqual([]);
    // the streaming instance sent `bye` before it stopped
    expect(scene.watcher.byes.length).toBeGreaterThan(0);
    expect(new Set(scene.watcher.byes)).toEqual(new Set(['shutdown']));
    const steps = new Map<string, number>();
    await Promise.all(scene.runners.map(async (runner) => steps.set(runner.agentId, await runner.finish())));
    await audit({ url, token: TOKEN, databaseUrl: libsql.url, steps, watcher: scene.watcher });
  });
});

type AnyFrame = FrameReader['frames'][number];

function isEvent(frame: AnyFrame): frame is Extract<AnyFrame, { event: 'session-event' }> {
  return frame.event === 'session-event';
}

/** A batch of maximum-size records with exactly this many bytes. */
function bodyOf(given: { producer: { id: string; epoch: number } }, bytes: number): string {
  const { producer } = given;
  const body = (paddings: number[]) => {
    const event = (padding: number) => ({ type: 'CUSTOM', name: 'marker', value: 'x'.repeat(padding) });
    const records = paddings.map((padding, index) =>
      marker(index + 1, { agentId: producer.id, sessionId: producer.id, event: event(padding) }),
    );
    return JSON.stringify({ producer, records });
  };
  const count = Math.ceil(bytes / (MAX_RECORD_BYTES - 1024));
  const rest = bytes - body(Array.from({ length: count }, () => 0)).length;
  const each = Math.floor(rest / count);
  return body(Array.from({ length: count }, (_, index) => (index === 0 ? rest - each * (count - 1) : each)));
}
