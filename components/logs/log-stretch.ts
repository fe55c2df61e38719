import type { Position } from '@/lib/protocol/position';
import type { LogBuffer } from './log-buffer';

/** Rows of the buffer, from `begin` up to `end`, that are laid out by their real heights. */
export interface LogStretch {
  begin: number;
  end: number;
  /** The line of the first row that has one, by which the stretch is found again, and how far down it is. */
  first: { position: Position; below: number } | null;
}

/** On either side of the reader, when the stretch is laid anew. */
const REACH = 400;
/** Nearer to its end than this it is laid anew. More than the highest screens show. */
const MARGIN = 150;

/**
 * The stretch around the reader, which stays the same as long as they are well within it, whatever comes and goes
 * before it.
 *
 * @param row where the reader is
 * @param isNow whether `row` is a row of the buffer as it is, not as it was when `before` was laid
 */
export function nextStretch(buffer: LogBuffer, before: LogStretch | null, row: number, isNow: boolean): LogStretch {
  const { rowCount } = buffer;
  const moved = before === null ? null : beginNow(buffer, before);
  const reader = Math.min(
    Math.max(isNow || before === null ? row : row + (moved ?? 0) - before.begin, 0),
    rowCount - 1,
  );
  if (moved !== null) {
    const end = Math.min(rowCount, moved + 2 * REACH);
    const isWithin = (moved === 0 || reader - moved >= MARGIN) && (end === rowCount || end - reader >= MARGIN);
    if (isWithin) return stretchOf(buffer, moved, end);
  }
  return stretchOf(buffer, Math.max(0, reader - REACH), Math.min(rowCount, reader + REACH));
}

/** @returns where the stretch's first row is now; null when nothing of it is known */
function beginNow(buffer: LogBuffer, { first }: LogStretch): number | null {
  if (first === null) return null;
  const row = buffer.indexFrom(first.position);
  return row < 0 ? null : Math.max(0, row - first.below);
}

function stretchOf(buffer: LogBuffer, begin: number, end: number): LogStretch {
  for (let below = 0; begin + below < end; below++) {
    const line = buffer.lineAt(begin + below);
    if (line !== null) return { begin, end, first: { position: line.position, below } };
  }
  return { begin, end, first: null };
}
