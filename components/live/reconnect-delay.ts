const FIRST_MS = 500;
const LONGEST_MS = 10_000;

/**
 * How long to wait before the nth attempt in a row (from 1): doubling from half a second to ten, with half of it left
 * to chance, so that a restarted server is not met by every browser in the same instant.
 *
 * @param random from 0 to 1
 */
export function reconnectDelayMs(attempt: number, random: number): number {
  const ceiling = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.max(0, attempt - 1));
  return ceiling / 2 + (ceiling / 2) * random;
}
