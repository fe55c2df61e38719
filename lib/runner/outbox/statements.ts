import type { InStatement, ResultSet } from '@libsql/client';

export const READ_IDENTITY = 'SELECT producer_id, epoch, last_seq FROM outbox';
/** Row count, bytes and last `seq` of the queue. */
export const READ_FILL =
  'SELECT count(*) AS rows, coalesce(sum(bytes), 0) AS bytes, coalesce(max(seq), 0) AS seq FROM queue';
/** The oldest queued record. Status records are always current, so they come last. */
export const READ_OLDEST = `SELECT coalesce((SELECT body FROM queue WHERE kind <> 'status' ORDER BY seq LIMIT 1),
  (SELECT body FROM queue ORDER BY seq LIMIT 1)) AS body`;

/** @returns epoch milliseconds; null if the queue is empty */
export function oldestAt(found: ResultSet | undefined): number | null {
  const body = found?.rows[0]?.body ?? null;
  return body === null ? null : ((JSON.parse(String(body)) as { occurredAt?: number }).occurredAt ?? null);
}

/** Restart state such as the position of a source, committed with the records it belongs to. */
export interface Cursor {
  name: string;
  /** null deletes it. */
  value: string | null;
}

export interface NewRow {
  seq: number;
  kind: string;
  bytes: number;
  body: string;
}

/** More rows per statement are no faster, and SQLite limits parameters. */
const ROWS_PER_INSERT = 100;

export function insertStatements(rows: NewRow[]): InStatement[] {
  const statements: InStatement[] = [];
  for (let from = 0; from < rows.length; from += ROWS_PER_INSERT) {
    const some = rows.slice(from, from + ROWS_PER_INSERT);
    statements.push({
      sql: `INSERT INTO queue (seq, kind, bytes, body) VALUES ${some.map(() => '(?, ?, ?, ?)').join(', ')}`,
      args: some.flatMap(({ seq, kind, bytes, body }) => [seq, kind, bytes, body]),
    });
  }
  return statements;
}

export function updateStatement({ seq, kind, bytes, body }: NewRow): InStatement {
  return { sql: 'UPDATE queue SET kind = ?, bytes = ?, body = ? WHERE seq = ?', args: [kind, bytes, body, seq] };
}

export function poisonStatement(epoch: number, seq: number, reason: string, now: number, body: string): InStatement {
  return {
    sql: 'INSERT INTO poisoned (epoch, seq, reason, poisoned_at, body) VALUES (?, ?, ?, ?, ?)',
    args: [epoch, seq, reason, now, body],
  };
}

export function cursorStatement({ name, value }: Cursor): InStatement {
  if (value === null) return { sql: 'DELETE FROM cursors WHERE name = ?', args: [name] };
  return {
    sql: 'INSERT INTO cursors (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
    args: [name, value],
  };
}

/**
 * Schema of the outbox file. `outbox` holds its identity, with `last_seq` at least the newest number that left the
 * queue; `queue` unacknowledged records, dense in `seq`; `poisoned` permanently rejected records and decisions about
 * them; `cursors` restart state.
 */
export const OUTBOX_SCHEMA = [
  `CREATE TABLE outbox (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    producer_id TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    last_seq INTEGER NOT NULL
  ) STRICT`,
  // `body` last: reading sizes must not touch the overflow pages of large bodies
  `CREATE TABLE queue (
    seq INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    body TEXT NOT NULL
  ) STRICT`,
  `CREATE TABLE poisoned (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    epoch INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    reason TEXT NOT NULL,
    poisoned_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'kept',
    decided_at INTEGER
  ) STRICT`,
  'CREATE TABLE cursors (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT',
  'PRAGMA user_version = 2',
];

export const OUTBOX_VERSION = 2;

/**
 * `synchronous = FULL` guards against power loss: a rolled-back commit would assign its `seq` to another record, which
 * the server would drop as a duplicate.
 */
export const OUTBOX_PRAGMAS = [
  'PRAGMA journal_mode = WAL',
  'PRAGMA synchronous = FULL',
  'PRAGMA wal_autocheckpoint = 1000',
  'PRAGMA busy_timeout = 2000',
  'PRAGMA cache_size = -8000',
];
