import { gzipSync } from 'node:zlib';
import type { Database } from '@/db/client';
import { yieldToLoop } from '@/db/yield-to-loop';
import { OWNER } from '@/lib/server/access/principal';
import { postEvents } from '@/lib/server/ingest/post-events';
import { callRoute } from '../support/call-route';
import { temporaryDatabase } from '../support/database';
import { benchContext, TOKEN } from './bench-context';
import { note, report } from './report';
import { workLine } from './workload';

/** Time of a 1 MiB batch, compressed and plain, while sixteen clients read log pages back to back. */
const READERS = 16;
const ROUNDS = 5;
const LINES = 20_000;
const BATCH_BYTES = 1024 * 1024;

const database: Database & { dispose(): Promise<void> } = await temporaryDatabase();
const context = benchContext(database);
const headers = { authorization: `Bearer ${TOKEN}`, host: '127.0.0.1' };
let seq = 0;
for (let lines = 0; lines < LINES; lines += 2_000) await post(nextBatch(2_000), false);

const over = new AbortController();
let pages = 0;
const readers = Array.from({ length: READERS }, (_, index) => readPages(`reader ${index}`));
const beganAt = performance.now();
const times = { plain: [] as number[], packed: [] as number[] };
for (let round = 0; round < ROUNDS; round += 1) {
  times.plain.push(await post(batchOf(BATCH_BYTES), false));
  times.packed.push(await post(batchOf(BATCH_BYTES), true));
}
const tookMs = performance.now() - beganAt;
over.abort();
await Promise.all(readers);

note('log pages read by sixteen clients', (pages * 1000) / tookMs, '/s');
note('1 MiB batch during reads, slowest', Math.max(...times.plain), 'ms');
report('1 MiB batch compressed, slowest', Math.max(...times.packed), 'ms', { atMost: 1000 });
await database.dispose();

async function readPages(name: string): Promise<void> {
  while (!over.signal.aborted) {
    await callRoute(context, 'GET', '/agents/worker/logs?limit=1000', { principal: { ...OWNER, id: name } });
    pages += 1;
    // simulates network arrival in a later turn of the event loop
    await yieldToLoop();
  }
}

function batchOf(bytes: number): string {
  for (let count = 4_000; ; count += 100) {
    const first = seq;
    const body = nextBatch(count);
    if (body.length >= bytes) return body;
    seq = first;
  }
}

function nextBatch(count: number): string {
  const records = Array.from({ length: count }, () => {
    seq += 1;
    return { seq, kind: 'log', agentId: 'worker', occurredAt: Date.now(), log: workLine(seq) };
  });
  return JSON.stringify({ producer: { id: 'worker', epoch: 1 }, records });
}

async function post(body: string, isPacked: boolean): Promise<number> {
  const sentAt = performance.now();
  const request = new Request('http://127.0.0.1/api/v1/events', {
    method: 'POST',
    headers: { ...headers, ...(isPacked ? { 'content-encoding': 'gzip' } : {}) },
    body: isPacked ? gzipSync(body) : body,
  });
  const response = await postEvents({ request: request, principal: OWNER, whenOver: () => () => {} }, context);
  if (response.status !== 200) throw new Error(await response.text());
  return performance.now() - sentAt;
}
