/** Steps beneath the last tick: more have no room for their labels. */
const MOST_STEPS = 3;
const LEADING = [1, 2, 5];

/** Where an axis of counts has its ticks: from zero on, in whole steps, and the last is no less than any of them. */
export function countTicks(most: number): number[] {
  for (let power = 1; ; power *= 10) {
    for (const leading of LEADING) {
      const step = leading * power;
      const steps = Math.max(1, Math.ceil(most / step));
      if (steps <= MOST_STEPS) return Array.from({ length: steps + 1 }, (_, at) => at * step);
    }
  }
}
