import type { InStatement } from '@libsql/client';

/** The store's statements that are needed in more than one place. */

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
