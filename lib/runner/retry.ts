import { retryDelayMs } from '@interlude/protocol/sse';

const USUAL = { firstMs: 1_000, longestMs: 10_000 };
/** A token is renewed by a person or a file: asking more often helps nobody. */
const UNAUTHORIZED = { firstMs: 30_000, longestMs: 30_000 };

/**
 * How long a runner waits after it has failed to reach the server.
 *
 * @param cause why the last attempt failed: `unauthorized`, or anything else
 * @param failures how many attempts have failed since the last success, from 1
 * @param random uniform in [0, 1)
 * @param longestMs of the waits that double
 * @returns milliseconds
 */
export function retryMs(cause: string, failures: number, random: number, longestMs = USUAL.longestMs): number {
  return retryDelayMs(failures, cause === 'unauthorized' ? UNAUTHORIZED : { ...USUAL, longestMs }, random);
}
