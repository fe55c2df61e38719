import { stringifyWellFormed } from '@interlude/protocol/json';
import { utf8Length } from '@interlude/protocol/text';
import type { InStatement, InValue } from '@libsql/client';
import type { ResultRows } from './reader';
import type { WriteTransaction } from './writes';
import { Yielder } from './yield-to-loop';

/** Maximum UTF-8 bytes of one argument. A libSQL server accepts about 4 MiB. */
export const MAX_ARGUMENT_BYTES = 2 * 1024 * 1024;

/** Building and copying a chunk of this size takes a few milliseconds on the event loop. */
const CHUNK_BYTES = 256 * 1024;
const MAX_ROWS = 500;
/** Rows that can't exceed this are not measured. */
const SMALL_ROW_BYTES = 2048;

/**
 * Repeats a statement that reads rows from `json_each(?1)`, for as many chunks as fit into one argument of a libSQL
 * server. A row too large for a chunk gets a separate chunk. Chunks are built lazily, so `runStatements` can yield to
 * the event loop in between.
 *
 * Failure: half surrogate pairs never get into the JSON. SQLite would extract one as invalid UTF-8, which crashes
 * libSQL.
 *
 * @param toRow returns the values that the statement reads per row; by default the row itself
 */
export function* chunkStatements<T>(
  rows: Iterable<T>,
  sql: string,
  toRow: (row: T) => unknown = (row) => row,
  { max = MAX_ROWS, args = [] }: { max?: number; args?: readonly InValue[] } = {},
): Generator<InStatement> {
  let chunk: string[] = [];
  let bytes = 0;
  for (const row of rows) {
    const json = stringifyWellFormed(toRow(row));
    // a UTF-16 unit takes at most 3 bytes
    const size = json.length * 3 <= SMALL_ROW_BYTES ? json.length * 3 : utf8Length(json) + 1;
    if (chunk.length > 0 && (bytes + size >= CHUNK_BYTES || chunk.length >= max)) {
      yield { sql, args: [`[${chunk.join()}]`, ...args] };
      chunk = [];
      bytes = 0;
    }
    chunk.push(json);
    bytes += size;
  }
  if (chunk.length > 0) yield { sql, args: [`[${chunk.join()}]`, ...args] };
}

const MAX_BATCH_STATEMENTS = 256;

/** Runs statements in order, batching small ones. Yields to the event loop between large or slowly built ones. */
export async function runStatements(
  transaction: Pick<WriteTransaction, 'batch'>,
  statements: Iterable<InStatement>,
): Promise<ResultRows[]> {
  const yielder = new Yielder();
  const results: ResultRows[] = [];
  let group: InStatement[] = [];
  let size = 0;
  for (const statement of statements) {
    group.push(statement);
    size += sizeOf(statement);
    if (size < CHUNK_BYTES && group.length < MAX_BATCH_STATEMENTS && !yielder.isDue) continue;
    // For a record as large as a request, building the chunk takes as long as running the statement.
    if (size >= CHUNK_BYTES) await yielder.yieldIfDue();
    for (const result of await transaction.batch(group)) results.push(result);
    await yielder.yieldNow();
    [group, size] = [[], 0];
  }
  if (group.length > 0) results.push(...(await transaction.batch(group)));
  return results;
}

function sizeOf(statement: InStatement): number {
  if (typeof statement === 'string' || !Array.isArray(statement.args)) return 0;
  return statement.args.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0);
}
