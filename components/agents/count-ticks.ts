/** Steps beneath the last tick: more have no room for their labels. */
const MOST_STEPS = 3;
const LEADING = [1, 2, 5];

/**
 * Where an axis of counts has its ticks: from zero on, in whole steps, and the last is above all of them: a bar that
 * touched the end would look cut off.
 */
export function countTicks(most: number): number[] {
  for (let power = 1; ; power *= 10) {
    for (const leading of LEADING) {
      const step = leading * power;
      const steps = Math.floor(most / step) + 1;
      if (steps <= MOST_STEPS) return Array.from({ length: steps + 1 }, (_, at) => at * step);
    }
  }
}
