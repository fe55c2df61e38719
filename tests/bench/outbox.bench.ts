import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { Outbox, type OutgoingRecord } from '@interlude/runner/outbox/outbox';
import { note, percentile, report } from './report';

/**
 * The outbox on this machine's disk with a server that discards everything.
 *
 * `enqueue` is measured as in an agent's turn: one awaited record at a time, each its own transaction that is durable
 * when the call resolves.
 */
const SINGLES = 3_000;
const BACKLOG = 100_000;

const folder = await mkdtemp(join(tmpdir(), 'interlude-bench-'));
const server = await nullServer();
const options = {
  producerId: 'bench',
  agentId: 'bench',
  endpoint: async () => ({ url: server.url, token: undefined }),
};

const record = (at: number): OutgoingRecord => ({
  kind: 'event',
  agentId: 'bench',
  sessionId: 'session-1',
  occurredAt: 1_795_000_000_000 + at,
  event: {
    type: 'TEXT_MESSAGE_CONTENT',
    messageId: 'message-1',
    delta: `piece ${at} of what an agent says, as long as most`,
  },
});

try {
  await enqueueing();
  await draining();
} finally {
  await server.close();
  await rm(folder, { recursive: true, force: true });
}

async function enqueueing(): Promise<void> {
  const away = async () => ({ url: 'http://127.0.0.1:9', token: undefined });
  const outbox = await Outbox.open(join(folder, 'enqueue.db'), { ...options, endpoint: away });
  for (let index = 0; index < 200; index += 1) await outbox.enqueue(record(index));
  const blocked: number[] = [];
  const durable: number[] = [];
  const disk: number[] = [];
  const file = openSync(join(folder, 'disk'), 'w');
  const page = Buffer.alloc(4_096, 1);
  for (let index = 0; index < SINGLES; index += 1) {
    const startedAt = performance.now();
    const stored = outbox.enqueue(record(index));
    blocked.push(performance.now() - startedAt);
    await stored;
    const storedAt = performance.now();
    durable.push(storedAt - startedAt);
    // The disk's own time for an equivalent write at the same moment: the lower bound of any durable queue.
    writeSync(file, page);
    fdatasyncSync(file);
    disk.push(performance.now() - storedAt);
  }
  closeSync(file);
  await outbox.stop();
  report('outbox enqueue, call, p99', percentile(blocked, 0.99), 'ms', { atMost: 1 });
  const beyond = percentile(durable, 0.5) - percentile(disk, 0.5);
  report('outbox enqueue, until durable, p50 beyond one disk sync', beyond, 'ms', { atMost: 1 });
  note('outbox enqueue, until durable, p50', percentile(durable, 0.5), 'ms');
  note('outbox enqueue, until durable, p99', percentile(durable, 0.99), 'ms');
  note('one disk write and sync, p50', percentile(disk, 0.5), 'ms');
  note('one disk write and sync, p99', percentile(disk, 0.99), 'ms');
}

async function draining(): Promise<void> {
  const outbox = await Outbox.open(join(folder, 'drain.db'), { ...options, sendAtOpen: false, maxBatchRows: 2_000 });
  // One tick is one transaction. The drain doesn't start because nothing wakes it.
  const filled: OutgoingRecord[] = Array.from({ length: BACKLOG }, (_, index) => record(index));
  const startedAt = performance.now();
  await outbox.enqueue(filled);
  const storedAt = performance.now();
  const { waiting } = await outbox.idle();
  const seconds = (performance.now() - storedAt) / 1_000;
  await outbox.stop();
  if (waiting > 0 || (await server.records()) < BACKLOG) throw new Error(`${waiting} records left in the outbox`);
  report('outbox drain', BACKLOG / seconds, 'records/s', { atLeast: 20_000 });
  note('outbox store, one group', BACKLOG / ((storedAt - startedAt) / 1_000), 'records/s');
}

/** Runs in its own thread, so that its work isn't counted. */
async function nullServer() {
  const code = `
    const { parentPort } = require('node:worker_threads');
    const { gunzipSync } = require('node:zlib');
    let records = 0;
    const server = require('node:http').createServer((request, response) => {
      const chunks = [];
      request.on('data', (chunk) => chunks.push(chunk));
      request.on('end', () => {
        const raw = Buffer.concat(chunks);
        const text = (request.headers['content-encoding'] === 'gzip' ? gunzipSync(raw) : raw).toString('latin1');
        const seqs = [...text.matchAll(/\\{"seq":(\\d+),/g)];
        records += seqs.length;
        const ackedSeq = Number(seqs.at(-1)[1]);
        response.end(JSON.stringify({ ackedSeq, accepted: seqs.length, duplicates: 0, rejected: [], position: '1' }));
      });
    });
    server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port));
    parentPort.on('message', () => parentPort.postMessage(records));
  `;
  const worker = new Worker(code, { eval: true });
  const port = await new Promise<number>((resolve) => worker.once('message', resolve));
  return {
    url: `http://127.0.0.1:${port}`,
    records: () =>
      new Promise<number>((resolve) => {
        worker.once('message', resolve);
        worker.postMessage('how many');
      }),
    close: () => worker.terminate(),
  };
}
