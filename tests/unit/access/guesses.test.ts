import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Guesses } from '@/lib/access/guesses';

let now = 0;
let guesses: Guesses;
beforeEach(() => {
  vi.useFakeTimers();
  now = 0;
  guesses = new Guesses(() => now);
});
afterEach(() => vi.useRealTimers());

/** How many of some wrong guesses have their answer by now. */
function guess(count: number): () => number {
  let answered = 0;
  for (let at = 0; at < count; at += 1) {
    guesses.wrong().then(
      () => {
        answered += 1;
      },
      () => {},
    );
  }
  return () => answered;
}

describe('wrong guesses', () => {
  test('are answered at once while there are few, and then four a second', async () => {
    const answered = guess(24);
    await vi.advanceTimersByTimeAsync(0);
    expect(answered()).toBe(20);
    await vi.advanceTimersByTimeAsync(500);
    expect(answered()).toBe(22);
    await vi.advanceTimersByTimeAsync(500);
    expect(answered()).toBe(24);
  });

  test('beyond what can wait are refused, with when to come back', async () => {
    guess(60);
    await expect(guesses.wrong()).rejects.toMatchObject({
      code: 'too_many_requests',
      headers: { 'retry-after': '10' },
    });
    await vi.advanceTimersByTimeAsync(60_000);
  });

  test('are forgotten after a minute', async () => {
    guess(30);
    await vi.advanceTimersByTimeAsync(10_000);
    now = 60_001;
    const answered = guess(20);
    await vi.advanceTimersByTimeAsync(0);
    expect(answered()).toBe(20);
  });
});
