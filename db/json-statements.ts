import { utf8Length } from '@interlude/protocol/log-text';
import { stringifyWellFormed } from '@interlude/protocol/well-formed';
import type { InStatement } from '@libsql/client';
import type { ResultRows } from './reader';
import type { WriteTransaction } from './writes';
import { Yielder } from './yield-to-loop';

/** Most UTF-8 bytes of one argument. A libSQL server takes about 4 MiB. */
export const MAX_ARGUMENT_BYTES = 2 * 1024 * 1024;

/** Size of a piece: building and copying it takes a few milliseconds on the event loop. */
const PIECE_BYTES = 256 * 1024;
/** Most rows of a piece. */
const FEW_ROWS = 500;
/** A row that can't be longer than this is not measured. */
const FEW_BYTES = 2048;

/**
 * A statement that reads many rows by `json_each(?)`, repeated for as many pieces of whole rows as its argument must be
 * cut into for a libSQL server to accept it. A row that is too large for a piece is a piece by itself. Each piece is
 * made on demand, so that `runInTurns` can give others their turns in between.
 *
 * Failure: whatever the rows hold, no half of a surrogate pair gets into the JSON: taken out of it again it would be no
 * UTF-8, at which libSQL ends the process.
 *
 * @param statement gets the JSON of an array
 * @param toRow what the statement reads from a row; by default the row itself
 * @param most rows of a piece
 */
export function* chunkStatements<T>(
  rows: Iterable<T>,
  statement: (json: string) => InStatement,
  toRow: (row: T) => unknown = (row) => row,
  most = FEW_ROWS,
): Generator<InStatement> {
  let piece: string[] = [];
  let bytes = 0;
  for (const row of rows) {
    const json = stringifyWellFormed(toRow(row));
    // a UTF-16 unit is 3 bytes at most: what is short by that need not be measured
    const size = json.length * 3 <= FEW_BYTES ? json.length * 3 : utf8Length(json) + 1;
    if (piece.length > 0 && (bytes + size >= PIECE_BYTES || piece.length >= most)) {
      yield statement(`[${piece.join()}]`);
      piece = [];
      bytes = 0;
    }
    piece.push(json);
    bytes += size;
  }
  if (piece.length > 0) yield statement(`[${piece.join()}]`);
}

/**
 * Runs statements in order: small ones as one batch; with large ones, or ones that take long to build, others get their
 * turns in between.
 * Nobody sees any of it before the transaction commits.
 */
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
    if (size < PIECE_BYTES && group.length < MANY_STATEMENTS && !yielder.isDue) continue;
    // building a piece from a record as large as a request takes as long as running it
    if (size >= PIECE_BYTES) await yielder.rest();
    for (const result of await transaction.batch(group)) results.push(result);
    await yielder.turn();
    [group, size] = [[], 0];
  }
  if (group.length > 0) results.push(...(await transaction.batch(group)));
  return results;
}

const MANY_STATEMENTS = 256;

function sizeOf(statement: InStatement): number {
  if (typeof statement === 'string' || !Array.isArray(statement.args)) return 0;
  return statement.args.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0);
}
