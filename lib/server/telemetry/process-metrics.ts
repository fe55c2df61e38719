import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { CountProcess, ProcessState } from './metrics';

/** Counters and gauges of this process. Labels are routes, methods and outcomes only, whose number is bounded. */
export const processMetrics: CountProcess = (state) => {
  const registry = new Registry();
  const registers = [registry];
  const durations = { buckets: SECONDS, registers };
  const requests = new Histogram({
    name: 'interlude_request_duration_seconds',
    help: 'Time from a request to the start of its response.',
    labelNames: ['method', 'route', 'status'],
    ...durations,
  });
  const batches = new Counter({
    name: 'interlude_ingest_batches_total',
    help: 'Batches received from outboxes, by outcome.',
    labelNames: ['outcome'],
    registers,
  });
  const records = new Counter({
    name: 'interlude_ingest_records_total',
    help: 'Records in stored batches, by outcome.',
    labelNames: ['outcome'],
    registers,
  });
  const bytes = new Counter({
    name: 'interlude_ingest_bytes_total',
    help: 'Uncompressed bytes of batches.',
    registers,
  });
  const took = new Histogram({
    name: 'interlude_ingest_duration_seconds',
    help: 'Time from receiving a batch to its commit.',
    ...durations,
  });
  const waited = new Histogram({
    name: 'interlude_ingest_wait_seconds',
    help: 'Time batches waited in the write queue.',
    ...durations,
  });
  const age = new Histogram({
    name: 'interlude_ingest_lag_seconds',
    help: 'Age of a batch’s newest record on arrival, by its runner’s clock.',
    buckets: LAG_SECONDS,
    registers,
  });
  const rows = new Counter({
    name: 'interlude_fanout_rows_total',
    help: 'Rows sent to subscribers, each counted once.',
    registers,
  });
  const chunks = new Counter({
    name: 'interlude_fanout_chunks_total',
    help: 'Chunks sent to subscribers.',
    registers,
  });
  const lag = new Histogram({
    name: 'interlude_fanout_lag_seconds',
    help: 'Time from a row’s commit to its fan-out.',
    buckets: LAG_SECONDS,
    registers,
  });
  const gauge = (name: string, help: string, read: (now: ProcessState) => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read(state()));
      },
    });
  gauge('interlude_subscribers', 'Open streams of this process.', ({ subscribers }) => subscribers);
  gauge('interlude_write_queue_jobs', 'Writes queued or running.', ({ writes }) => writes.jobs);
  gauge('interlude_write_queue_bytes', 'Request bytes of queued and running writes.', ({ writes }) => writes.bytes);
  gauge('interlude_read_queue_jobs', 'Heavy reads queued.', ({ reads }) => reads);
  return {
    telemetry: {
      answered({ method, route, status, tookMs }) {
        // an unknown path's method is arbitrary
        const which = route === null ? { method: 'any', route: 'none' } : { method, route };
        requests.observe({ ...which, status: String(status) }, tookMs / 1000);
      },
      ingested(told) {
        batches.inc({ outcome: told.kind });
        bytes.inc(told.bytes);
        took.observe(told.tookMs / 1000);
        waited.observe(told.waitedMs / 1000);
        if (told.ageMs !== null) age.observe(told.ageMs / 1000);
        if (told.outcome === null) return;
        records.inc({ outcome: 'accepted' }, told.outcome.accepted);
        records.inc({ outcome: 'duplicate' }, told.outcome.duplicates);
        records.inc({ outcome: 'rejected' }, told.outcome.rejected);
      },
      published(told) {
        rows.inc(told.rows);
        chunks.inc(told.subscribers);
        if (told.lagMs !== null) lag.observe(told.lagMs / 1000);
      },
    },
    text: async () => `${await registry.metrics()}\n${await ofNode().metrics()}`,
  };
};

let node: Registry | undefined;

/** prom-client's Node metrics: one registry per process, however many servers it has, created by the first scrape. */
function ofNode(): Registry {
  if (node === undefined) {
    node = new Registry();
    collectDefaultMetrics({ register: node });
  }
  return node;
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** A runner may have been offline for days. */
const LAG_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 300, 3600, 86_400];
