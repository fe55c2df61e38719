import { expect } from 'vitest';

/**
 * Limits of time are written for an idle machine of the usual kind. What a test runs on may be half as fast, and does other
 * things besides: there everything takes longer, and nobody is at fault for it.
 */

/** How long the known work takes on that machine, in ms. */
const USUAL_MS = 8;
const TRIES = 5;

/**
 * How much longer the same work takes here and now, by the clock: 1 or more. The longest of a few tries, because what is
 * judged by it may have met the worst of them.
 */
export function pace(): number {
  const took = Array.from({ length: TRIES }, () => {
    const since = performance.now();
    knownWork();
    return performance.now() - since;
  });
  return Math.max(1, Math.max(...took) / USUAL_MS);
}

/**
 * Fails if something took longer than its limit, which is longer where the machine is slower just then.
 *
 * @param limitMs on an idle machine of the usual kind
 */
export function expectWithin(tookMs: number, limitMs: number, what?: string): void {
  if (tookMs < limitMs) return;
  expect(tookMs, what).toBeLessThan(limitMs * pace());
}

/** Waits for something, and fails if that took longer than its limit. */
export async function comesWithin<Result>(limitMs: number, coming: Promise<Result>): Promise<Result> {
  const since = performance.now();
  const result = await coming;
  expectWithin(performance.now() - since, limitMs);
  return result;
}

/** Some of everything: objects, texts, numbers. */
function knownWork(): number {
  const rows = Array.from({ length: 4_000 }, (_, at) => ({
    at,
    name: `row ${(at * 7919) % 4_001}`,
    list: [at, at + 1],
  }));
  const read = JSON.parse(JSON.stringify(rows)) as typeof rows;
  read.sort((a, b) => (a.name < b.name ? -1 : 1));
  return read.reduce((sum, { name, list }) => sum + name.replace(/\d/g, 'x').length + (list[1] ?? 0), 0);
}
