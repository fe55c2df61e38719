import { INBOX_KINDS } from '@interlude/protocol/inbox-kinds';
import { SESSION_STATES } from '@interlude/protocol/session-states';
import type { InValue, Row } from '@libsql/client';
import type { Database } from '@/db/client';
import type { Gauge, Sample } from './gauges';

/** More of a kind are not counted: nobody waits for the rest. */
const MOST_COUNTED = 100_000;

interface Reading {
  sql: string;
  args?: (now: number) => InValue[];
  toGauges(rows: readonly Row[]): Gauge[];
}

/**
 * How the fleet stands, as the database has it: the same from every instance, and after a restart. Each is a walk along
 * an index, or over the one row that each agent or outbox has.
 */
const READINGS: readonly Reading[] = [
  {
    sql: SESSION_STATES.map(
      (state) => `SELECT '${state}' AS label, count(*) AS value FROM
        (SELECT 1 FROM sessions WHERE state = '${state}' LIMIT ${MOST_COUNTED})`,
    ).join(' UNION ALL '),
    toGauges: labelled('interlude_sessions', 'state', 'Sessions in each state.'),
  },
  {
    sql: INBOX_KINDS.map(
      (kind) => `SELECT '${kind}' AS label, count(*) AS value FROM
        (SELECT 1 FROM inbox WHERE done_at IS NULL AND kind = '${kind}' LIMIT ${MOST_COUNTED})`,
    ).join(' UNION ALL '),
    toGauges: labelled('interlude_inbox_items', 'kind', 'What needs a person, by kind.'),
  },
  {
    sql: `SELECT (SELECT count(*) FROM agents) AS agents,
      (SELECT count(*) FROM runners WHERE alive_until > ?) AS runners,
      (SELECT count(*) FROM (SELECT 1 FROM tasks WHERE status = 'running' LIMIT ${MOST_COUNTED})) AS tasks,
      (SELECT count(*) FROM (SELECT 1 FROM obligations WHERE state = 'owed' LIMIT ${MOST_COUNTED})) AS owed,
      (SELECT count(*) FROM (SELECT 1 FROM commands WHERE state IN ('queued', 'delivered') LIMIT ${MOST_COUNTED})) AS open,
      (SELECT position FROM counter) AS position`,
    args: (now) => [now],
    toGauges: ([row]) => [
      single('interlude_agents', 'Agents that were ever heard of.', row?.agents),
      single('interlude_runners_connected', 'Runners that listen for commands.', row?.runners),
      single('interlude_tasks_running', 'Background tasks that run.', row?.tasks),
      single('interlude_replies_owed', 'Messages that wait for a reply.', row?.owed),
      single('interlude_commands_open', 'Commands that no runner has done yet.', row?.open),
      single('interlude_position', 'The newest position in the database.', row?.position),
    ],
  },
  {
    // those that have fallen silent say nothing of how full they are
    sql: `SELECT sum(body->>'$.status.outbox.depth') AS depth, max(body->>'$.status.outbox.depth') AS deepest,
        max(body->>'$.status.outbox.oldestAgeMs') / 1000.0 AS age, sum(body->>'$.status.outbox.poisoned') AS poisoned
      FROM agents INDEXED BY agents_by_silence WHERE NOT is_silent`,
    toGauges: ([row]) => [
      single('interlude_outbox_records', 'Records that wait in outboxes, as their runners last said.', row?.depth),
      single('interlude_outbox_deepest_records', 'Records in the fullest outbox.', row?.deepest),
      single('interlude_outbox_oldest_age_seconds', 'Age of the oldest record in any outbox.', row?.age),
      single('interlude_outbox_poisoned_records', 'Records that outboxes have set aside.', row?.poisoned),
    ],
  },
  {
    sql: `SELECT sum(accepted) AS accepted, sum(duplicates) AS duplicate, sum(gaps) AS gap, sum(rejected) AS rejected,
      sum(lost) AS lost FROM producers`,
    toGauges: ([row]) => [
      {
        name: 'interlude_stored_records_total',
        help: 'What became of all records that were ever sent to this database: sums over all instances.',
        type: 'counter',
        samples: ['accepted', 'duplicate', 'gap', 'rejected', 'lost'].map((outcome) => ({
          labels: { outcome },
          value: Number(row?.[outcome] ?? 0),
        })),
      },
    ],
  },
];

/** A server may not tell it. */
const SIZE = 'SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()';

/** All of one moment. */
export async function readGauges({ reader }: Pick<Database, 'reader'>, now: number): Promise<Gauge[]> {
  const statements = READINGS.map(({ sql, args }) => ({ sql, args: args?.(now) ?? [] }));
  const [found, size] = await Promise.all([reader.batch(statements, 'read'), reader.execute(SIZE).catch(() => null)]);
  const gauges = READINGS.flatMap(({ toGauges }, at) => toGauges(found[at]?.rows ?? []));
  const bytes = size?.rows[0]?.bytes;
  if (bytes === undefined || bytes === null) return gauges;
  return [...gauges, single('interlude_database_bytes', 'Size of the database, without its log.', bytes)];
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
