import { markRedacted, type RedactedFor, redactedMetrics } from '@interlude/protocol/redaction/redact-model';
import { LISTED_AS, LISTED_STATES, type SessionState } from '@interlude/protocol/session-states';
import { INBOX_KINDS } from '@interlude/protocol/vocabulary';
import type { InValue, Row } from '@libsql/client';
import type { Database } from '@/db/client';
import { Yielder } from '@/db/yield-to-loop';
import type { RequestContext } from '@/lib/server/access/request-context';
import type { TtlCache } from '@/lib/server/access/ttl-cache';
import type { Telemetry } from './telemetry';

export interface ProcessState {
  subscribers: number;
  writes: { jobs: number; bytes: number };
  reads: number;
}

interface ProcessMetrics {
  telemetry: Telemetry;
  text(): Promise<string>;
}

/** Starts counting a process's work. Returns null for a process that freezes between requests. */
export type CountProcess = (state: () => ProcessState) => ProcessMetrics | null;

/** Scrapes within this time share a result. */
const SHARED_MS = 1_000;

/** Renders `GET /metrics`. */
export interface Metrics {
  text(): Promise<RedactedFor<'metrics'>>;
}

/**
 * Metrics of the fleet's state, from the database, and of a long-lived process's counters.
 *
 * @param ofProcess null for a process that freezes between requests
 */
export function createMetrics(
  database: Database,
  now: () => number,
  ofProcess: ProcessMetrics | null,
  cache: TtlCache<RedactedFor<'metrics'>>,
): Metrics {
  async function read(): Promise<RedactedFor<'metrics'>> {
    const gauges = await database.reads.run('metrics', () => readGauges(database, now()));
    const counters = (await ofProcess?.text()) ?? NO_COUNTERS;
    return redactedMetrics(`${formatGauges(gauges)}\n${counters}`, new Yielder().maybeYield);
  }
  const clock = () => performance.now();
  return { text: () => cache.get(clock, read, () => SHARED_MS) };
}

const NO_COUNTERS = '# This process freezes between requests, so it has no counters.\n';

/** A gauge sampled at scrape time. */
export interface Gauge {
  /** @see https://prometheus.io/docs/practices/naming/ */
  name: string;
  help: string;
  type: 'gauge' | 'counter';
  samples: readonly Sample[];
}

interface Sample {
  labels: Readonly<Record<string, string>>;
  value: number;
}

/**
 * Prometheus text format. Label values are our own words and need no escaping.
 *
 * @see https://prometheus.io/docs/instrumenting/exposition_formats/
 */
function formatGauges(gauges: readonly Gauge[]): string {
  return gauges
    .map(({ name, help, type, samples }) => {
      const lines = samples.map(({ labels, value }) => `${name}${labelText(labels)} ${value}`);
      return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines, ''].join('\n');
    })
    .join('\n');
}

function labelText(labels: Sample['labels']): string {
  const named = Object.entries(labels).map(([name, value]) => `${name}="${value}"`);
  return named.length === 0 ? '' : `{${named.join(',')}}`;
}

/** Maximum of each count, which bounds the query time. */
const MAX_COUNTED = 100_000;

/** Counts sessions up to twice the maximum, so that a difference of two counts can reach it. */
const countOf = (where: string) =>
  `(SELECT count(*) FROM (SELECT 1 FROM sessions WHERE ${where} LIMIT ${2 * MAX_COUNTED}))`;

interface Reading {
  sql: string;
  args?: (now: number) => InValue[];
  toGauges(rows: readonly Row[]): Gauge[];
}

/**
 * The fleet's state from the database: identical on every instance and after a restart. Each reading walks an index, or
 * one row per agent or outbox.
 */
const READINGS: readonly Reading[] = [
  {
    sql: LISTED_STATES.map((listed) => {
      const other = LISTED_AS[listed as SessionState];
      const moved = other === undefined ? '0' : countOf(`listed_as = '${other}'`);
      const all = `${countOf(`state = '${listed}'`)} - ${moved} + ${countOf(`listed_as = '${listed}'`)}`;
      return `SELECT '${listed}' AS label, min(${all}, ${MAX_COUNTED}) AS value`;
    }).join(' UNION ALL '),
    toGauges: labelled('interlude_sessions', 'state', 'Sessions by listed state.'),
  },
  {
    sql: INBOX_KINDS.map(
      (kind) => `SELECT '${kind}' AS label, count(*) AS value FROM
        (SELECT 1 FROM inbox WHERE done_at IS NULL AND kind = '${kind}' LIMIT ${MAX_COUNTED})`,
    ).join(' UNION ALL '),
    toGauges: labelled('interlude_inbox_items', 'kind', 'Open inbox items by kind.'),
  },
  {
    sql: `SELECT (SELECT count(*) FROM agents) AS agents,
      (SELECT count(*) FROM runners WHERE alive_until > ?) AS runners,
      (SELECT count(*) FROM (SELECT 1 FROM tasks WHERE status = 'running' LIMIT ${MAX_COUNTED})) AS tasks,
      (SELECT count(*) FROM (SELECT 1 FROM obligations WHERE state = 'owed' LIMIT ${MAX_COUNTED})) AS owed,
      (SELECT count(*) FROM (SELECT 1 FROM commands WHERE state IN ('queued', 'delivered') LIMIT ${MAX_COUNTED})) AS open,
      (SELECT position FROM counter) AS position`,
    args: (now) => [now],
    toGauges: ([row]) => [
      single('interlude_agents', 'Known agents.', row?.agents),
      single('interlude_runners_connected', 'Connected runners.', row?.runners),
      single('interlude_tasks_running', 'Running background tasks.', row?.tasks),
      single('interlude_replies_owed', 'Messages waiting for a reply.', row?.owed),
      single('interlude_commands_open', 'Commands not yet acknowledged by a runner.', row?.open),
      single('interlude_position', 'Newest position in the database.', row?.position),
    ],
  },
  {
    // silent agents report nothing about their outboxes
    sql: `SELECT sum(body->>'$.status.outbox.depth') AS depth, max(body->>'$.status.outbox.depth') AS deepest,
        max(body->>'$.status.outbox.oldestAgeMs') / 1000.0 AS age, sum(body->>'$.status.outbox.poisoned') AS poisoned
      FROM agents INDEXED BY agents_by_silence WHERE NOT is_silent`,
    toGauges: ([row]) => [
      single('interlude_outbox_records', 'Unsent records in outboxes, as last reported by runners.', row?.depth),
      single('interlude_outbox_deepest_records', 'Records in the fullest outbox.', row?.deepest),
      single('interlude_outbox_oldest_age_seconds', 'Age of the oldest record in any outbox.', row?.age),
      single('interlude_outbox_poisoned_records', 'Records set aside by outboxes.', row?.poisoned),
    ],
  },
  {
    sql: `SELECT sum(accepted) AS accepted, sum(duplicates) AS duplicate, sum(gaps) AS gap, sum(rejected) AS rejected,
      sum(lost) AS lost FROM producers`,
    toGauges: ([row]) => [
      {
        name: 'interlude_stored_records_total',
        help: 'Records sent to this database by outcome, across all instances.',
        type: 'counter',
        samples: ['accepted', 'duplicate', 'gap', 'rejected', 'lost'].map((outcome) => ({
          labels: { outcome },
          value: Number(row?.[outcome] ?? 0),
        })),
      },
    ],
  },
];

/** Some servers don't report their size. */
const SIZE = 'SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()';

/** Reads all gauges in one snapshot. */
export async function readGauges({ reader }: Pick<Database, 'reader'>, now: number): Promise<Gauge[]> {
  const statements = READINGS.map(({ sql, args }) => ({ sql, args: args?.(now) ?? [] }));
  const [found, size] = await Promise.all([reader.batch(statements, 'read'), reader.execute(SIZE).catch(() => null)]);
  const gauges = READINGS.flatMap(({ toGauges }, index) => toGauges(found[index]?.rows ?? []));
  const bytes = size?.rows[0]?.bytes;
  if (bytes === undefined || bytes === null) return gauges;
  return [...gauges, single('interlude_database_bytes', 'Size of the database without its write-ahead log.', bytes)];
}

function labelled(name: string, label: string, help: string) {
  return (rows: readonly Row[]): Gauge[] => [
    {
      name,
      help,
      type: 'gauge',
      samples: rows.map((row): Sample => ({ labels: { [label]: String(row.label) }, value: Number(row.value) })),
    },
  ];
}

function single(name: string, help: string, value: unknown): Gauge {
  return { name, help, type: 'gauge', samples: [{ labels: {}, value: Number(value ?? 0) }] };
}

/** `GET /metrics`. Has no labels for single agents or sessions. */
export async function getMetrics(_context: RequestContext, { metrics }: { metrics: Metrics }): Promise<Response> {
  const headers = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8', 'cache-control': 'no-store' };
  const text: RedactedFor<'metrics'> = await metrics.text();
  return markRedacted(new Response(text, { headers }));
}
