import { request as ask, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createClient } from '@libsql/client';
import { openDatabase } from '@/db/client';
import { startLibsqlServer } from '../support/libsql-server.mjs';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { note, report } from './report';
import { BARE_INSERT, BareRows, type WorkRecord, workload } from './workload';

/**
 * Two instances (`npm start`) on one libSQL server. Their combined ingest compared with bare json_each batches of the
 * same rows over the same HTTP, sequential because a libSQL server may hang on concurrent batches. And the latency from
 * a POST at one instance to the frame at the other, with and without the server's change feed.
 */
const RECORDS_PER_REQUEST = 500;
const WRITERS = 4;
const WARM_UP_ROUNDS = 3;
const ROUNDS = 12;
const REQUESTS_PER_ROUND = 5;
const FRAMES = 300;
const FRAME_EVERY_MS = 40;

const ours = await startLibsqlServer();
const bare = await startLibsqlServer();
for (const { url } of [ours, bare]) await (await openDatabase({ url, migrates: true })).close();
const feedless = await withoutFeed(ours.url);
const servers: LiveServer[] = [];
try {
  const token = 'a-token-for-benches-0123456789';
  const start = (url: string) => startLiveServer({ token, env: { INTERLUDE_DATABASE_URL: url } });
  servers.push(await start(ours.url), await start(ours.url));
  const [one, other] = servers as [LiveServer, LiveServer];
  await ingest([one, other]);
  await frames('with the feed', one, other, 100);
  await other.stop();
  servers.pop();
  const polling = await start(feedless.url);
  servers.push(polling);
  await frames('with the poll', one, polling, 400);
} finally {
  for (const server of servers) await server.stop();
  await feedless.close();
  await ours.stop();
  await bare.stop();
}

async function ingest(instances: readonly LiveServer[]): Promise<void> {
  const client = createClient({ url: bare.url });
  const sources = Array.from({ length: WRITERS }, (_, writer) => workload(`agent-${writer}`, 10));
  const times = { ours: 0, bare: 0 };
  const bareRows = new BareRows();
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round += 1) {
    const batches = sources.map((source) =>
      Array.from({ length: REQUESTS_PER_ROUND }, () =>
        Array.from({ length: RECORDS_PER_REQUEST }, () => source.next().value as WorkRecord),
      ),
    );
    const bodies = batches.map((own, writer) =>
      own.map((records) => JSON.stringify({ producer: { id: `agent-${writer}`, epoch: 1 }, records })),
    );
    const rows = batches.map((own) => own.map((records) => bareRows.json(records)));
    const measure = async (which: keyof typeof times, work: () => Promise<unknown>) => {
      const begunAt = performance.now();
      await work();
      if (round >= WARM_UP_ROUNDS) times[which] += performance.now() - begunAt;
    };
    const first = round % 2 === 0;
    const sendAll = () =>
      Promise.all(bodies.map((own, writer) => sendInTurn(instances[writer % instances.length] as LiveServer, own)));
    const insertAll = async () => {
      for (const json of rows.flat()) await client.batch([{ sql: BARE_INSERT, args: [json] }], 'write');
    };
    if (first) await measure('ours', sendAll);
    await measure('bare', insertAll);
    if (!first) await measure('ours', sendAll);
  }
  client.close();
  const rate = (ms: number) => (ROUNDS * WRITERS * REQUESTS_PER_ROUND * RECORDS_PER_REQUEST * 1000) / ms;
  note('two instances: ingest', rate(times.ours), 'records/s');
  note('two instances: bare json_each batches', rate(times.bare), 'rows/s');
  report('two instances: ingest, relative to bare batches', rate(times.ours) / rate(times.bare), '', { atLeast: 0.5 });
}

async function sendInTurn(server: LiveServer, bodies: readonly string[]): Promise<void> {
  for (const body of bodies) await post(server, body);
}

async function post(server: LiveServer, body: string): Promise<void> {
  const response = await fetch(`${server.url}/api/v1/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
    body,
  });
  if (!response.ok) throw new Error(await response.text());
  await response.arrayBuffer();
}

/** Sends one event at a time from one instance to the other. */
async function frames(how: string, from: LiveServer, to: LiveServer, atMost: number): Promise<void> {
  const id = `frames ${how}`;
  const took: number[] = [];
  let isLive = false;
  const over = new AbortController();
  const stream = await fetch(`${to.url}/api/v1/stream?topic=session:${encodeURIComponent(id)}`, {
    headers: { authorization: `Bearer ${to.token}` },
    signal: over.signal,
  });
  const reading = (async () => {
    let tail = '';
    for await (const chunk of stream.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const blocks = (tail + chunk).split('\n\n');
      tail = blocks.pop() ?? '';
      isLive ||= blocks.some((block) => block.includes('event: up-to-date'));
      for (const block of blocks) {
        const sentAt = /"sentAt":([\d.]+)/.exec(block)?.[1];
        if (sentAt !== undefined) took.push(performance.now() - Number(sentAt));
      }
    }
  })().catch(() => {});
  while (!isLive) await new Promise((resolve) => setTimeout(resolve, 10));
  for (let seq = 1; seq <= FRAMES; seq += 1) {
    const sentAt = performance.now();
    const event = { type: 'CUSTOM', name: 'bench', value: 'x'.repeat(80), sentAt };
    const record = { seq, kind: 'event', agentId: id, sessionId: id, occurredAt: Date.now(), event };
    await post(from, JSON.stringify({ producer: { id, epoch: 1 }, records: [record] }));
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 2 * FRAME_EVERY_MS));
  }
  const until = performance.now() + 5_000;
  while (took.length < FRAMES && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 10));
  over.abort();
  await reading;
  took.sort((a, b) => a - b);
  report(`two instances, ${how}: share of frames received`, took.length / FRAMES, '', { atLeast: 1 });
  note(`two instances, ${how}: POST to frame at the other instance, p50`, took[took.length >> 1] ?? Number.NaN, 'ms');
  const p99 = took[Math.floor(took.length * 0.99)] ?? Number.NaN;
  report(`two instances, ${how}: POST to frame at the other instance, p99`, p99, 'ms', { atMost });
}

/** A proxy to the same server that hides its change feed. */
async function withoutFeed(url: string): Promise<{ url: string; close(): Promise<void> }> {
  const proxy = createServer((request, response) => {
    if (request.url?.startsWith('/beta/listen')) return void response.writeHead(404).end();
    const { method, headers } = request;
    const on = ask(`${url}${request.url}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    on.on('error', () => response.destroy());
    request.pipe(on);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    close: async () => {
      proxy.closeAllConnections();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}
