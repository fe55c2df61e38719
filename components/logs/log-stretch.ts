import type { LogWindow } from './log-window';

export const LINE_PX = 20;
export const TOP_PX = 32;
export const BOTTOM_PX = 8;
/** Browsers lay out no box of more than some 17 million pixels: in a longer log, rows far from the reader count as less. */
const MOST_PX = 12_000_000;
/** Rows on either side of the reader, when the stretch is laid anew. */
const REACH = 400;
/** Nearer to its end than this it is laid anew. More than the highest screens show. */
const MARGIN = 150;

/** Rows from `begin` up to `end`, that are laid out by their real heights; all others count as `farPx` high. */
export interface LogStretch {
  begin: number;
  end: number;
  farPx: number;
  /** The number of a line by which the stretch is found again, and how far down it is. */
  mark: { number: number; below: number };
}

/** The stretch around a row: as long wherever that is, so that all rows together are as high. */
export function stretchAround(window: LogWindow, row: number): LogStretch {
  const begin = Math.max(0, Math.min(row - REACH, window.rowCount - 2 * REACH));
  return stretchFrom(window, begin);
}

/** The same stretch where its rows are now; while the reader follows the end, with that in it. */
export function stretchNow(window: LogWindow, { mark }: LogStretch, follows: boolean): LogStretch {
  const begin = Math.max(0, window.indexOfNumber(mark.number) - mark.below);
  if (follows && begin + 2 * REACH < window.rowCount) return stretchFrom(window, window.rowCount - REACH);
  return stretchFrom(window, begin);
}

/** Whether the rows that the reader may come to next are in it. */
export function isWithin(window: LogWindow, { begin, end }: LogStretch, row: number): boolean {
  return (begin === 0 || row - begin >= MARGIN) && (end === window.rowCount || end - row >= MARGIN);
}

/** @returns the row that stands at `px` from the top once the stretch is laid out around it */
export function farRowAt(window: LogWindow, px: number): number {
  const { rowCount } = window;
  const farPx = farPxOf(rowCount);
  const near = REACH * LINE_PX;
  const down = px - TOP_PX;
  if (rowCount <= 2 * REACH || down <= near) return Math.max(0, Math.min(Math.floor(down / LINE_PX), rowCount - 1));
  const row = Math.floor(REACH + (down - near) / farPx);
  if (row <= rowCount - REACH) return row;
  return Math.min(rowCount - 1, Math.floor(rowCount - 2 * REACH + (down - (rowCount - 2 * REACH) * farPx) / LINE_PX));
}

function stretchFrom(window: LogWindow, begin: number): LogStretch {
  const end = Math.min(window.rowCount, begin + 2 * REACH);
  const farPx = farPxOf(window.rowCount);
  for (let below = 0; begin + below < end; below++) {
    const line = window.lineAt(begin + below);
    if (line !== null) return { begin, end, farPx, mark: { number: line.line, below } };
  }
  return { begin, end, farPx, mark: { number: window.numberAt(begin), below: 0 } };
}

function farPxOf(rowCount: number): number {
  return Math.min(LINE_PX, MOST_PX / rowCount);
}
