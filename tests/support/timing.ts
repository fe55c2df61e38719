import { expect } from 'vitest';

/** Time limits assume an idle reference machine. A slower or busier machine gets proportionally more time. */

/** Milliseconds of the reference work on the reference machine. */
const USUAL_MS = 8;
const TRIES = 5;

/**
 * Current slowdown relative to the reference machine, by wall clock; at least 1. Uses the slowest of several tries,
 * because the measured work may have met the worst load.
 */
export function slowdown(): number {
  const took = Array.from({ length: TRIES }, () => {
    const since = performance.now();
    knownWork();
    return performance.now() - since;
  });
  return Math.max(1, Math.max(...took) / USUAL_MS);
}

/**
 * Fails if the time exceeds the limit, scaled by the current slowdown.
 *
 * @param limitMs on the idle reference machine
 */
export function expectWithin(tookMs: number, limitMs: number, what?: string): void {
  if (tookMs < limitMs) return;
  expect(tookMs, what).toBeLessThan(limitMs * slowdown());
}

/** Awaits a promise and fails if it took longer than the limit. */
export async function resolvesWithin<Result>(limitMs: number, coming: Promise<Result>): Promise<Result> {
  const since = performance.now();
  const result = await coming;
  expectWithin(performance.now() - since, limitMs);
  return result;
}

/** Mixed work: objects, texts, numbers. */
function knownWork(): number {
  const rows = Array.from({ length: 4_000 }, (_, index) => ({
    at: index,
    name: `row ${(index * 7919) % 4_001}`,
    list: [index, index + 1],
  }));
  const read = JSON.parse(JSON.stringify(rows)) as typeof rows;
  read.sort((a, b) => (a.name < b.name ? -1 : 1));
  return read.reduce((sum, { name, list }) => sum + name.replace(/\d/g, 'x').length + (list[1] ?? 0), 0);
}

/**
 * CPU milliseconds of some work, independent of other load: the minimum of several runs. Repeats only while the first
 * run is slow.
 */
export function cpuMs(work: () => unknown, worthAnotherMs = 50): number {
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 3 && least > worthAnotherMs; run++) {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}

/**
 * Longest time in milliseconds that one task blocked this process's event loop. Measured as CPU time, so that load from
 * other programs doesn't count, but at most the wall-clock time, because other threads (garbage collection) use CPU
 * too.
 */
export async function longestBlockMs(work: () => Promise<void>): Promise<number> {
  let longest = 0;
  let isOver = false;
  let used = processorMs();
  let at = performance.now();
  const look = () => {
    const [usedNow, now] = [processorMs(), performance.now()];
    longest = Math.max(longest, Math.min(usedNow - used, now - at));
    [used, at] = [usedNow, now];
    if (!isOver) setImmediate(look);
  };
  look();
  await work().finally(() => {
    isOver = true;
  });
  // the turn that completed the work
  await new Promise((resolve) => setImmediate(resolve));
  look();
  return longest;
}

function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
