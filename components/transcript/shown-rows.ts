/** Rows `[from, to)` of a long list: shown, or left out for now. */
export interface Stretch {
  from: number;
  to: number;
  isShown: boolean;
}

/** How much of a turn's beginning and end is shown before more is asked for. */
export interface RowLimits {
  head: number;
  tail: number;
}

/** What stands in the page before any script runs, and then. */
export const FIRST_PAINT_ROWS: RowLimits = { head: 10, tail: 40 };
export const TURN_ROWS: RowLimits = { head: 60, tail: 120 };
/** Shown with each asking. */
export const MORE_ROWS = 200;
/** Shown on either side of a row that somebody was led to. */
const AROUND = 20;
/** The end moves on by so many, so that not every new row takes an old one away. */
const TAIL_STEP = 40;

/**
 * Which rows of a turn are shown: a turn of ten thousand would hold up the server that renders it, and the page.
 *
 * @param opened the rows that were asked for, as `[from, to)`
 */
export function stretchesOf(
  count: number,
  { head, tail }: RowLimits,
  opened: readonly (readonly [number, number])[] = [],
): Stretch[] {
  if (count <= head + tail + TAIL_STEP) return [{ from: 0, to: count, isShown: true }];
  const tailFrom = Math.floor((count - tail) / TAIL_STEP) * TAIL_STEP;
  const wanted = [[0, head] as const, ...opened, [tailFrom, count] as const]
    .map(([from, to]) => [Math.max(0, from), Math.min(count, to)] as const)
    .sort((a, b) => a[0] - b[0]);
  const stretches: Stretch[] = [];
  let at = 0;
  for (const [from, to] of wanted) {
    if (to <= at) continue;
    if (from > at) stretches.push({ from: at, to: from, isShown: false });
    const last = stretches.at(-1);
    if (last?.isShown) last.to = to;
    else stretches.push({ from: Math.max(from, at), to, isShown: true });
    at = to;
  }
  return stretches;
}

export function around(row: number): readonly [number, number] {
  return [row - AROUND, row + AROUND];
}
