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

const guessWrong = (count: number) => {
  for (let at = 0; at < count; at += 1) guesses.wrong();
};

/** How many of some that come at once had their turn by now. */
function come(count: number): () => number {
  let had = 0;
  for (let at = 0; at < count; at += 1) {
    guesses.turn().then(
      () => {
        had += 1;
      },
      () => {},
    );
  }
  return () => had;
}

describe('secrets that may be guesses', () => {
  test('are compared at once while few were wrong, and then fifty a second', async () => {
    guessWrong(19);
    const before = come(100);
    await vi.advanceTimersByTimeAsync(0);
    expect(before()).toBe(100);
    guessWrong(1);
    const after = come(100);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(after()).toBe(50);
  });

  test('that are more than can wait are refused, with when to come back, and not compared', async () => {
    guessWrong(20);
    come(200);
    await expect(guesses.turn()).rejects.toMatchObject({ code: 'too_many_requests', headers: { 'retry-after': '10' } });
    await vi.advanceTimersByTimeAsync(60_000);
  });

  test('wait for nobody whose request was given up, with its timers', async () => {
    guessWrong(20);
    come(199);
    vi.clearAllTimers();
    now = 4_000;
    const had = come(200);
    await vi.advanceTimersByTimeAsync(4_000);
    expect(had()).toBe(200);
  });

  test('wait no longer once the wrong ones are a minute old', async () => {
    guessWrong(30);
    now = 60_001;
    const had = come(100);
    await vi.advanceTimersByTimeAsync(0);
    expect(had()).toBe(100);
  });
});
