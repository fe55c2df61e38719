/**
 * The delay before the next attempt. It doubles with every failure, and half of it is random, so that clients don't
 * reconnect in the same instant.
 *
 * @param failures failed attempts since the last success, from 1
 * @param random from 0 to 1
 * @returns milliseconds between half of min(longestMs, firstMs · 2^(failures−1)) and all of it
 */
export function retryDelayMs(
  failures: number,
  { firstMs, longestMs }: { firstMs: number; longestMs: number },
  random: number,
): number {
  const ceilingMs = Math.min(longestMs, firstMs * 2 ** Math.max(0, failures - 1));
  return (ceilingMs * (1 + random)) / 2;
}
