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
export function slowdown(): number {
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
  expect(tookMs, what).toBeLessThan(limitMs * slowdown());
}

/** Waits for something, and fails if that took longer than its limit. */
export async function resolvesWithin<Result>(limitMs: number, coming: Promise<Result>): Promise<Result> {
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
 * How long at most this process's event loop was held by one piece of work, in milliseconds: of processor time, because
 * what a neighbour on a busy machine takes meanwhile is nobody's fault, and no more than went by, because other threads of
 * the process use processors, too (those that collect garbage).
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
  // the turn that ended it
  await new Promise((resolve) => setImmediate(resolve));
  look();
  return longest;
}

function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
