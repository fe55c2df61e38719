import type { InStatement, ResultSet } from '@libsql/client';

/** The statements that are needed in more than one place. */

export const READ_IDENTITY = 'SELECT producer_id, epoch, last_seq FROM outbox';
/** How much waits: how many rows, their bytes, and the last one's number. */
export const READ_FILL =
  'SELECT count(*) AS rows, coalesce(sum(bytes), 0) AS bytes, coalesce(max(seq), 0) AS seq FROM queue';
/** What waits longest. A status record does not tell how long the queue waits: it is of now, wherever it stands. */
export const READ_OLDEST = `SELECT coalesce((SELECT body FROM queue WHERE kind <> 'status' ORDER BY seq LIMIT 1),
  (SELECT body FROM queue ORDER BY seq LIMIT 1)) AS body`;

/** @returns when it happened, epoch milliseconds; null if nothing waits */
export function oldestAt(found: ResultSet | undefined): number | null {
  const body = found?.rows[0]?.body ?? null;
  return body === null ? null : ((JSON.parse(String(body)) as { occurredAt?: number }).occurredAt ?? null);
}

/** How far a source was read, or what else must be known after a restart; committed with the records it goes with. */
export interface Cursor {
  name: string;
  /** null forgets it. */
  value: string | null;
}

export interface NewRow {
  seq: number;
  kind: string;
  bytes: number;
  body: string;
}

/** More rows to a statement bring nothing, and SQLite limits the parameters. */
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

/** Gives the row with this number other content. */
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
 * The outbox's file. `outbox` is its one row of identity, in which `last_seq` is at least the newest number that has
 * left the queue; `queue` holds what waits, dense in `seq`; `poisoned` what the server will never take, with what a
 * person decided about it; `cursors` how far each source has been read, written with what was read.
 */
export const OUTBOX_SCHEMA = [
  `CREATE TABLE outbox (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    producer_id TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    last_seq INTEGER NOT NULL
  ) STRICT`,
  // `body` last: reading the sizes of the rows must not touch the overflow pages of large bodies
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
 * `synchronous = FULL` although the process's own death would not need it: after a power cut a commit that came back
 * undone would give its `seq` to another record, and the server would take that one for a duplicate.
 */
export const OUTBOX_PRAGMAS = [
  'PRAGMA journal_mode = WAL',
  'PRAGMA synchronous = FULL',
  'PRAGMA wal_autocheckpoint = 1000',
  'PRAGMA busy_timeout = 2000',
  'PRAGMA cache_size = -8000',
];
