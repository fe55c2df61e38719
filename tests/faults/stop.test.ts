import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { createClient } from '@libsql/client';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { marker } from '../support/ingest-target';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { startScene, untilUnderLoad, verifyDelivery } from '../support/scene';
import { WAIT_MS } from '../support/timeouts';
import { expectWithin } from '../support/timing';
import { Watcher } from '../support/watcher';

/** A server stopped under load exits at once, sends `bye` to its readers and loses nothing. */
let server: LiveServer;
beforeAll(async () => {
  server = await startLiveServer();
});
afterAll(() => server.stop());

test.each([
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const)('%s ends a server under load within two seconds, each stream with its bye', async (signal, exitCode) => {
  const agents = ['a', 'b'].map((name) => `${signal.toLowerCase()}-${name}`);
  const scene = await startScene(signal, server, agents);
  await untilUnderLoad(scene);
  const end = await server.signal(signal);
  expect(end.exitCode).toBe(exitCode);
  process.stdout.write(`${signal}: stopped after ${Math.round(end.afterMs)} ms\n`);
  expectWithin(end.afterMs, 2_000);
  await scene.watcher.until(() => scene.watcher.byes.length > 0);
  expect(scene.watcher.byes).toEqual(['shutdown']);
  // the single file contains everything, so a copy of it is complete
  const log = await stat(join(server.dataDir, 'interlude.db-wal')).catch(() => null);
  expect(log?.size ?? 0).toBe(0);
  await server.restart();
  for (const runner of scene.runners) runner.kick();
  await verifyDelivery(scene);
});

test('a server keeps running when its output is closed, and stops on a signal', async () => {
  const unheard = await startLiveServer({ env: { INTERLUDE_LOG_LEVEL: 'debug' } });
  onTestFinished(() => unheard.stop());
  unheard.unheard();
  // each of which is logged
  for (let n = 0; n < 50; n += 1) {
    const signal = AbortSignal.timeout(WAIT_MS);
    expect((await fetch(`${unheard.url}/api/v1/sessions`, { signal })).status).toBe(401);
  }
  const end = await unheard.signal('SIGTERM');
  expect(end.exitCode).toBe(143);
  expectWithin(end.afterMs, 2_000);
});

test('a stopping server keeps every record that it acknowledges', async () => {
  const posters = ['p1', 'p2', 'p3', 'p4', 'p5', 'p6'].map((id) => new Poster(id));
  await Promise.all(posters.map((poster) => poster.until(5)));
  // neither a reader that stalls nor a writer that stalls delays it
  await unread('/api/v1/stream?topic=fleet');
  const { received } = await halfPosted();
  const end = await server.signal('SIGTERM');
  process.stdout.write(`SIGTERM: stopped after ${Math.round(end.afterMs)} ms\n`);
  expect(end.exitCode).toBe(143);
  expectWithin(end.afterMs, 2_000);
  expect(await received).toBe('');
  await Promise.all(posters.map((poster) => poster.ended));
  expect(posters.map(({ wrong }) => wrong)).toEqual(posters.map(() => null));
  const client = createClient({ url: server.databaseUrl });
  onTestFinished(() => client.close());
  for (const { id, acknowledged } of posters) {
    const { rows } = await client.execute({
      sql: 'SELECT seq FROM events WHERE producer_id = ? ORDER BY position',
      args: [id],
    });
    const seqs = rows.map(({ seq }) => Number(seq));
    expect(seqs).toEqual(seqs.map((_, index) => index + 1));
    // the last record may have been stored without a response
    expect([acknowledged, acknowledged + 1]).toContain(seqs.length);
  }
  await server.restart();
});

test('a second signal ends the server at once', async () => {
  await halfPosted();
  const first = server.signal('SIGTERM');
  // it has received the first signal and waits for running requests
  await expect.poll(() => refusesConnections()).toBe(true);
  const second = await server.signal('SIGINT');
  await first;
  expect(second.exitCode).toBe(130);
});

test('a Ctrl-C that npm forwards counts once', async () => {
  const started = await startLiveServer({ env: { npm_lifecycle_event: 'start' } });
  onTestFinished(() => started.stop());
  const watcher = new Watcher(started, ['fleet']);
  onTestFinished(() => watcher.close());
  await watcher.until(() => watcher.connections > 0);
  const [end] = await Promise.all([started.signal('SIGINT'), started.signal('SIGINT')]);
  expect(end.exitCode).toBe(130);
  await watcher.until(() => watcher.byes.length > 0);
});

/** Posts records one after the other until the server is down. */
class Poster {
  acknowledged = 0;
  /** An unexpected response. */
  wrong: string | null = null;
  readonly ended: Promise<void>;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #waiting = new Set<() => void>();

  constructor(readonly id: string) {
    this.ended = this.#post().finally(() => this.#agent.destroy());
  }

  async until(count: number): Promise<void> {
    while (this.acknowledged < count) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  async #post(): Promise<void> {
    const session = { agentId: this.id, sessionId: this.id };
    for (let seq = 1; this.wrong === null; seq += 1) {
      const body = { producer: { id: this.id, epoch: 1 }, records: [marker(seq, session)] };
      const response = await this.#send(JSON.stringify(body));
      if (response === null) return;
      const answer = await text(response).catch((error) => `half of an answer: ${error}`);
      if (response.statusCode === 200 && answer.includes(`"ackedSeq":${seq},`)) this.acknowledged = seq;
      else this.wrong = `${response.statusCode} ${answer}`;
      for (const notify of this.#waiting) notify();
      this.#waiting.clear();
    }
  }

  /** @returns null without a response */
  #send(body: string): Promise<IncomingMessage | null> {
    return new Promise((resolve) => {
      const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' };
      const sent = request(`${server.url}/api/v1/events`, { method: 'POST', agent: this.#agent, headers }, resolve);
      sent.on('error', () => resolve(null));
      sent.end(body);
    });
  }
}

/** Opens a stream without reading it. */
async function unread(path: string): Promise<void> {
  const headers = { authorization: `Bearer ${server.token}` };
  const outgoing = request(`${server.url}${path}`, { headers }).end();
  outgoing.on('error', () => undefined);
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  response.on('error', () => undefined);
  onTestFinished(() => void outgoing.destroy());
}

/** Sends an incomplete request and resolves once the server waits for the rest. */
async function halfPosted(): Promise<{ received: Promise<string> }> {
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  let came = '';
  socket.on('data', (chunk) => {
    came += chunk;
  });
  socket.on('error', () => undefined);
  const closed = once(socket, 'close');
  const headers = `Host: 127.0.0.1\r\nAuthorization: Bearer ${server.token}\r\nExpect: 100-continue\r\nContent-Length: 10`;
  socket.write(`POST /api/v1/events HTTP/1.1\r\n${headers}\r\n\r\n`);
  await expect.poll(() => came).toContain('100 Continue');
  came = '';
  socket.write('half');
  return { received: closed.then(() => came) };
}

function refusesConnections(): Promise<boolean> {
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
  return new Promise((resolve) => {
    socket.once('connect', () => resolve(false));
    socket.once('error', () => resolve(true));
  }).finally(() => socket.destroy()) as Promise<boolean>;
}
