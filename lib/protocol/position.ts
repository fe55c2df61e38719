/**
 * Where a row stands in the order of the whole server: a decimal integer as a string, given out at commit from one
 * counter for all kinds of rows.
 *
 * Ordering: a later commit has a greater position; within a commit, `seq` order.
 * Clients treat it as opaque and only compare it (`comparePositions`) or hand it back (`after`, `Last-Event-ID`).
 */
export type Position = string;

/** Before every row. `after=0` reads from the beginning. */
export const ORIGIN: Position = '0';

/** Whether `text`, from outside, is a position. */
export function isPosition(text: string): text is Position {
  return /^(0|[1-9]\d{0,15})$/.test(text) && Number.isSafeInteger(Number(text));
}

/** Negative when `a` stands before `b`, positive when after, 0 when they are the same place. */
export function comparePositions(a: Position, b: Position): number {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
}

export function laterPosition(a: Position, b: Position): Position {
  return comparePositions(a, b) >= 0 ? a : b;
}

/** The counter's value, for SQL, which takes safe integers only: `isPosition` refuses more. */
export function positionToNumber(position: Position): number {
  return Number(position);
}

export function positionFromNumber(value: number | bigint): Position {
  return String(value);
}
