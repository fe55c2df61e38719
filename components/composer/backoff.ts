const FIRST_MS = 1_000;
const LONGEST_MS = 15_000;

/** How long to wait before the next attempt, after this many in a row that got no answer. */
export function backoffMs(failures: number): number {
  return Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.max(0, failures - 1));
}
