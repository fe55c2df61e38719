import { vi } from 'vitest';
import { yieldToLoop } from '@/db/yield-to-loop';

/**
 * Makes the event loop yield after every unit of work until mocks are restored.
 *
 * @returns the number of yields since
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

/** A query that takes some hundred milliseconds. */
export const LONG_SELECT = `WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 2000000)
  SELECT max(n) AS n FROM count`;

/** Counts the event loop's turns until the work is done. */
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
