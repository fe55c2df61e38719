import { OWNER } from '@/lib/server/access/principal';
import { postEvents } from '@/lib/server/ingest/post-events';
import { LogKeeper } from '@/lib/server/log-store/log-keeper';
import { temporaryDatabase } from '../support/database';
import { benchContext, TOKEN } from './bench-context';
import { note, percentile, report } from './report';
import { workLine, workload } from './workload';

/**
 * Effect of 100,000 log lines per minute from ten agents on an eleventh agent's session events: its requests, fsynced
 * and projected, with and without concurrent log ingest and indexing. Both alternate, so that other load affects both.
 */
const AGENTS = 10;
const LINES_PER_MINUTE = 100_000;
const REQUESTS_PER_SECOND_AND_AGENT = 5;
const EVENTS_PER_REQUEST = 10;
const EVENT_EVERY_MS = 25;
const PHASE_MS = Number(process.env.BENCH_PHASE_MS ?? 10_000);
const PHASES = 6;

const database = await temporaryDatabase();
const context = benchContext(database);
const keeper = new LogKeeper(context, { maxAgeMs: 14 * 86_400_000, maxBytes: 256 * 1024 * 1024 });
keeper.start();

const events = workload('session-agent', 5);
const times = { quiet: [] as number[], busy: [] as number[] };
const writers = Array.from({ length: AGENTS }, (_, agent) => ({ id: `log-agent-${agent}`, seq: 0 }));
let lines = 0;
let busyMs = 0;

await measure('quiet', 2000);
times.quiet = [];
for (let phase = 0; phase < PHASES; phase += 1) {
  if (phase % 2 === 0) await measure('quiet', PHASE_MS);
  else {
    const isOver = new AbortController();
    const beganAt = performance.now();
    const logs = writers.map((writer, index) => writeLogs(writer, index, isOver.signal));
    await measure('busy', PHASE_MS);
    isOver.abort();
    await Promise.all(logs);
    busyMs += performance.now() - beganAt;
  }
}
const { rows } = await database.reader.execute(
  'SELECT sum(last_line) AS written, sum(last_line - indexed_line) AS waiting FROM agent_logs',
);
keeper.close();

const [quiet, busy] = [percentile(times.quiet, 0.99), percentile(times.busy, 0.99)];
report('log ingest: lines per minute from ten agents', (lines * 60_000) / busyMs, '', {
  atLeast: LINES_PER_MINUTE * 0.95,
});
if (Number(rows[0]?.written) !== lines) throw new Error(`${rows[0]?.written} lines of ${lines} are in the log`);
note('log ingest: lines not yet in a chunk', Number(rows[0]?.waiting), 'lines');
note('session events, p99 without log lines', quiet, 'ms');
note('session events, p99 with log lines', busy, 'ms');
report('session events, p99 delayed by log lines', Math.max(0, busy - quiet), 'ms', { atMost: 20 });
await database.dispose();

/** Sends requests on schedule regardless of earlier responses, so that queueing is measured. */
async function measure(kind: keyof typeof times, forMs: number): Promise<void> {
  const answers: Promise<void>[] = [];
  let last = Promise.resolve();
  for (let at = performance.now(), end = at + forMs; at < end; at += EVENT_EVERY_MS) {
    await until(at);
    const records = Array.from({ length: EVENTS_PER_REQUEST }, () => events.next().value);
    const sentAt = performance.now();
    // one producer's requests are sequential
    last = last
      .then(() => post('session-agent', records))
      .then(() => void times[kind].push(performance.now() - sentAt));
    answers.push(last);
  }
  await Promise.all(answers);
}

async function writeLogs(writer: { id: string; seq: number }, index: number, over: AbortSignal): Promise<void> {
  const everyMs = 1000 / REQUESTS_PER_SECOND_AND_AGENT;
  const count = Math.ceil(LINES_PER_MINUTE / 60 / AGENTS / REQUESTS_PER_SECOND_AND_AGENT);
  // staggered
  for (let at = performance.now() + (everyMs * index) / AGENTS; !over.aborted; at += everyMs) {
    await until(at);
    const records = Array.from({ length: count }, () => {
      writer.seq += 1;
      const log = workLine(writer.seq * AGENTS + index);
      return { seq: writer.seq, kind: 'log', agentId: writer.id, occurredAt: Date.now(), log };
    });
    await post(writer.id, records);
    lines += count;
  }
}

async function post(producerId: string, records: unknown[]): Promise<void> {
  const request = new Request('http://127.0.0.1/api/v1/events', {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, host: '127.0.0.1', 'content-type': 'application/json' },
    body: JSON.stringify({ producer: { id: producerId, epoch: 1 }, records }),
  });
  const response = await postEvents({ request: request, principal: OWNER, whenOver: () => () => {} }, context);
  if (response.status !== 200) throw new Error(await response.text());
}

function until(at: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, at - performance.now())));
}
