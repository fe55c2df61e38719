import { vi } from 'vitest';

/**
 * Makes every piece of work one after which others are due a turn, however fast the machine, until mocks are restored.
 * @returns how many turns the event loop was given since
 */
export function hurriedWork(): () => number {
  let now = performance.now();
  vi.spyOn(performance, 'now').mockImplementation(() => {
    now += 1_000;
    return now;
  });
  const turns = vi.spyOn(globalThis, 'setImmediate');
  return () => turns.mock.calls.length;
}
