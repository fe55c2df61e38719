import type { InStatement } from '@libsql/client';
import { utf8Length } from '@/lib/protocol/log-text';
import { stringifyWellFormed } from '@/lib/protocol/well-formed';

/** Most UTF-8 bytes of one argument. A libSQL server takes about 4 MiB. */
export const MAX_ARGUMENT_BYTES = 2 * 1024 * 1024;

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
  const whole = stringifyWellFormed(rows);
  return (isShort(whole) ? [whole] : piecesOf(rows)).map(statement);
}

function piecesOf(rows: readonly unknown[]): string[] {
  const pieces: string[] = [];
  let piece: string[] = [];
  let bytes = 0;
  for (const row of rows) {
    const json = stringifyWellFormed(row);
    const size = utf8Length(json) + 1;
    if (piece.length > 0 && bytes + size >= MAX_ARGUMENT_BYTES) {
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
  return text.length * 3 <= MAX_ARGUMENT_BYTES || utf8Length(text) <= MAX_ARGUMENT_BYTES;
}
