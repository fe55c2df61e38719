import type { InStatement, ResultSet } from '@libsql/client';
import { utf8Length } from '@/lib/protocol/log-text';
import { stringifyWellFormed } from '@/lib/protocol/well-formed';
import { nextTurn } from './next-turn';
import type { WriteTransaction } from './write-queue';

/** Most UTF-8 bytes of one argument. A libSQL server takes about 4 MiB. */
export const MAX_ARGUMENT_BYTES = 2 * 1024 * 1024;

/** How large a piece is made: a database file takes it on the event loop itself, in a few milliseconds. */
const PIECE_BYTES = 256 * 1024;
/** More rows than this are not tried in one piece. */
const FEW_ROWS = 500;

/**
 * A statement over many rows, which it reads by `json_each(?)`, as many times as its argument must be cut: into pieces of
 * whole rows that a libSQL server takes. A row that is larger by itself is a piece by itself.
 *
 * Failure: whatever the rows hold, no half of a surrogate pair gets into the JSON: taken out of it again it would be no
 * UTF-8, at which libSQL ends the process.
 *
 * @param statement is given the JSON of an array
 */
export function inPieces(rows: readonly unknown[], statement: (json: string) => InStatement): InStatement[] {
  if (rows.length === 0) return [];
  const whole = rows.length <= FEW_ROWS ? stringifyWellFormed(rows) : null;
  return (whole !== null && isShort(whole) ? [whole] : piecesOf(rows)).map(statement);
}

function piecesOf(rows: readonly unknown[]): string[] {
  const pieces: string[] = [];
  let piece: string[] = [];
  let bytes = 0;
  for (const row of rows) {
    const json = stringifyWellFormed(row);
    const size = utf8Length(json) + 1;
    if (piece.length > 0 && (bytes + size >= PIECE_BYTES || piece.length >= FEW_ROWS)) {
      pieces.push(`[${piece.join()}]`);
      piece = [];
      bytes = 0;
    }
    piece.push(json);
    bytes += size;
  }
  return [...pieces, `[${piece.join()}]`];
}

/** A UTF-16 unit is 3 bytes at most: most texts need not be measured. */
function isShort(text: string): boolean {
  return text.length * 3 <= PIECE_BYTES || utf8Length(text) <= PIECE_BYTES;
}

/**
 * Runs statements in order, as one batch where they are small: where they are not, others get their turns between.
 * Nothing of it is seen by anybody before the transaction commits.
 * @param atOnce most statements of one batch, where each is heavy by itself
 */
export async function runInTurns(
  transaction: Pick<WriteTransaction, 'batch'>,
  statements: InStatement[],
  atOnce = MANY_STATEMENTS,
): Promise<ResultSet[]> {
  const results: ResultSet[] = [];
  let group: InStatement[] = [];
  let size = 0;
  for (const statement of statements) {
    group.push(statement);
    size += sizeOf(statement);
    if (size < PIECE_BYTES && group.length < atOnce) continue;
    results.push(...(await transaction.batch(group)));
    await nextTurn();
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
