import { vi } from 'vitest';
import { yieldToLoop } from '@/db/yield-to-loop';

/**
 * Makes every piece of work one after which others are due a turn, however fast the machine, until mocks are restored.
 * @returns how many turns the event loop was given since
 */
export function alwaysYield(): () => number {
  let now = performance.now();
  vi.spyOn(performance, 'now').mockImplementation(() => {
    now += 1_000;
    return now;
  });
  const turns = vi.spyOn(globalThis, 'setImmediate');
  return () => turns.mock.calls.length;
}

/** Some hundred milliseconds of counting. */
export const LONG_SELECT = `WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 2000000)
  SELECT max(n) AS n FROM count`;

/** How many turns the event loop had until work was done. */
export async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  let isDone = false;
  const done = () => {
    isDone = true;
  };
  void work.then(done, done);
  for (; !isDone; turns += 1) await yieldToLoop();
  await work;
  return turns;
}
