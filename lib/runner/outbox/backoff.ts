/**
 * How long a failed sender rests: it doubles to ten seconds, so that a server that is back is not kept waiting,
 * and is spread, so that a fleet does not come back as one.
 */

const FIRST_MS = 1_000;
const LONGEST_MS = 10_000;
/** A token is renewed by a person or a file, so asking often helps nobody. */
const UNAUTHORIZED_MS = 30_000;

/**
 * @param failures how many sends have failed since the last success, from 1
 * @param random uniform in [0, 1)
 * @returns milliseconds, uniform in [exp/2, exp] with exp = min(10 s, 1 s · 2^(failures−1))
 */
export function backoffMs(failures: number, random: number): number {
  return spread(Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 30)), random);
}

/** @returns milliseconds until the token is tried again, uniform in [15 s, 30 s] */
export function unauthorizedMs(random: number): number {
  return spread(UNAUTHORIZED_MS, random);
}

function spread(longestMs: number, random: number): number {
  return longestMs / 2 + (longestMs / 2) * random;
}
