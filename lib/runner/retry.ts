/**
 * How long to wait after a failure to reach the server: it doubles up to ten seconds, so that a server that is back is not
 * kept waiting, and is spread, so that a fleet does not come back all at once.
 */

const FIRST_MS = 1_000;
const LONGEST_MS = 10_000;
/** A token is renewed by a person or a file: asking more often helps nobody. */
const UNAUTHORIZED_MS = 30_000;

/**
 * @param cause why the last attempt failed: `unauthorized`, or anything else
 * @param failures how many attempts have failed since the last success, from 1
 * @param random uniform in [0, 1)
 * @param most of the waits that double
 * @returns milliseconds, uniform in [longest/2, longest]: 30 s for a refused token, else min(most, 1 s · 2^(failures−1))
 */
export function retryMs(cause: string, failures: number, random: number, most = LONGEST_MS): number {
  const usualMs = Math.min(most, FIRST_MS * 2 ** Math.min(failures - 1, 30));
  const longestMs = cause === 'unauthorized' ? UNAUTHORIZED_MS : usualMs;
  return longestMs / 2 + (longestMs / 2) * random;
}
