/**
 * A row's place in the server's single order: a decimal integer as a string, assigned at commit from one counter for all
 * kinds of rows. Opaque to clients, which compare positions (`comparePositions`) or pass them back (`after`,
 * `Last-Event-ID`).
 *
 * Ordering: a later commit has a greater position; within a commit, positions follow `seq`.
 */
export type Position = string;

/** Before every row: `after=0` reads from the beginning. */
export const ORIGIN: Position = '0';

export function isPosition(text: string): text is Position {
  return /^(0|[1-9]\d{0,15})$/.test(text) && Number.isSafeInteger(Number(text));
}

/** Negative if `a` is before `b`, positive if after, 0 if equal. */
export function comparePositions(a: Position, b: Position): number {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
}

export function laterPosition(a: Position, b: Position): Position {
  return comparePositions(a, b) >= 0 ? a : b;
}

/** For SQL, which accepts safe integers only; `isPosition` rejects larger ones. */
export function positionToNumber(position: Position): number {
  return Number(position);
}

export function positionFromNumber(value: number | bigint): Position {
  return String(value);
}
