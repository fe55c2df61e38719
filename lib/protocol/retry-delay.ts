/**
 * How long to wait before the next attempt: it doubles with every failure, so that a server that is back is not kept
 * waiting, and half of it is left to chance, so that not everybody comes back in the same instant.
 *
 * @param failures how many attempts have failed since the last success, from 1
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
