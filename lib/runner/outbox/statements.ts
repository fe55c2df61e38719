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
