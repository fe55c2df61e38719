import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { CountProcess, ProcessState } from './metrics';

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Buckets up to days, because a runner can be offline that long. */
const LAG_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 300, 3600, 86_400];

/** Counters and gauges of this process. Labels are only routes, methods and outcomes: a bounded number. */
export const processMetrics: CountProcess = (state) => {
  const registry = new Registry();
  const registers = [registry];
  const counter = (name: string, help: string, labelNames: string[] = []) =>
    new Counter({ name, help, labelNames, registers });
  const histogram = (name: string, help: string, buckets: number[], labelNames: string[] = []) =>
    new Histogram({ name, help, buckets, labelNames, registers });
  const gauge = (name: string, help: string, read: (now: ProcessState) => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read(state()));
      },
    });
  const requests = histogram(
    'interlude_request_duration_seconds',
    'Time from a request to the start of its response.',
    SECONDS,
    ['method', 'route', 'status'],
  );
  const batches = counter('interlude_ingest_batches_total', 'Batches received from outboxes, by outcome.', ['outcome']);
  const records = counter('interlude_ingest_records_total', 'Records in stored batches, by outcome.', ['outcome']);
  const bytes = counter('interlude_ingest_bytes_total', 'Uncompressed bytes of batches.');
  const duration = histogram(
    'interlude_ingest_duration_seconds',
    'Time from receiving a batch to its commit.',
    SECONDS,
  );
  const wait = histogram('interlude_ingest_wait_seconds', 'Time batches waited in the write queue.', SECONDS);
  const age = histogram(
    'interlude_ingest_lag_seconds',
    'Age of a batch’s newest record on arrival, by its runner’s clock.',
    LAG_SECONDS,
  );
  const rows = counter('interlude_fanout_rows_total', 'Rows sent to subscribers, each counted once.');
  const chunks = counter('interlude_fanout_chunks_total', 'Chunks sent to subscribers.');
  const lag = histogram('interlude_fanout_lag_seconds', 'Time from a row’s commit to its fan-out.', LAG_SECONDS);
  gauge('interlude_subscribers', 'Open streams of this process.', ({ subscribers }) => subscribers);
  gauge('interlude_write_queue_jobs', 'Queued or running writes.', ({ writes }) => writes.jobs);
  gauge('interlude_write_queue_bytes', 'Request bytes of queued and running writes.', ({ writes }) => writes.bytes);
  gauge('interlude_read_queue_jobs', 'Queued heavy reads.', ({ reads }) => reads);
  return {
    telemetry: {
      responded({ method, route, status, tookMs }) {
        // an unknown path may come with any method
        const labels = route === null ? { method: 'any', route: 'none' } : { method, route };
        requests.observe({ ...labels, status: String(status) }, tookMs / 1000);
      },
      ingested(batch) {
        batches.inc({ outcome: batch.kind });
        bytes.inc(batch.bytes);
        duration.observe(batch.tookMs / 1000);
        wait.observe(batch.waitedMs / 1000);
        if (batch.ageMs !== null) age.observe(batch.ageMs / 1000);
        if (batch.outcome === null) return;
        records.inc({ outcome: 'accepted' }, batch.outcome.accepted);
        records.inc({ outcome: 'duplicate' }, batch.outcome.duplicates);
        records.inc({ outcome: 'rejected' }, batch.outcome.rejected);
      },
      published({ rows: count, subscribers, lagMs }) {
        rows.inc(count);
        chunks.inc(subscribers);
        if (lagMs !== null) lag.observe(lagMs / 1000);
      },
    },
    text: async () => `${await registry.metrics()}\n${await nodeMetrics().metrics()}`,
  };
};

let nodeRegistry: Registry | undefined;

/** prom-client's Node metrics: one registry per process, for all of its servers, created by the first scrape. */
function nodeMetrics(): Registry {
  if (nodeRegistry === undefined) {
    nodeRegistry = new Registry();
    collectDefaultMetrics({ register: nodeRegistry });
  }
  return nodeRegistry;
}
