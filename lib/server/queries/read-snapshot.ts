import { type Position, positionFromNumber } from '@interlude/protocol/position';
import type { Scope } from '@interlude/protocol/scope';
import type { InValue, Row } from '@libsql/client';
import type { Reader } from '@/db/reader';
import { positionIn } from '@/db/scope-sql';

/** A statement with a decoder for its rows. */
export interface Query<T> {
  sql: string;
  args: InValue[];
  toRow: (row: Row) => T;
}

export function query<T>(toRow: (row: Row) => T, sql: string, ...args: InValue[]): Query<T> {
  return { sql, args, toRow };
}

/** A statement whose rows are only counted, or decoded later with yields in between. */
export function rawRow(row: Row): Row {
  return row;
}

/**
 * Runs queries on one snapshot. A stream opened `after` the snapshot's position misses and repeats nothing. The
 * position is the newest one that the scope may see.
 *
 * @returns the rows by query
 */
export async function readSnapshot<T extends readonly unknown[]>(
  { reader, scope }: { reader: Pick<Reader, 'batch'>; scope: Scope },
  queries: { [K in keyof T]: Query<T[K]> },
): Promise<{ position: Position; found: { [K in keyof T]: T[K][] } }> {
  const statements = queries.map(({ sql, args }) => ({ sql, args }));
  const [counter, ...results] = await reader.batch([positionIn(scope), ...statements], 'read');
  return {
    position: positionFromNumber(Number(counter?.rows[0]?.position ?? 0)),
    found: queries.map(({ toRow }, index) => (results[index]?.rows ?? []).map(toRow)) as { [K in keyof T]: T[K][] },
  };
}
