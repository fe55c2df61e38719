import { describe, expect, it } from 'vitest';
import { SETTLE_MS, Stillness } from '@/components/ui/stillness';

const HERE = { left: 10, top: 100 };
const THERE = { left: 10, top: 140 };

describe('what can be pressed', () => {
  it('is settled once it has stood in its place for its time, and not before', () => {
    const stillness = new Stillness();
    expect(stillness.isSettled(5_000)).toBe(false);
    stillness.look(HERE, 1_000, false);
    expect([1_000, 1_000 + SETTLE_MS - 1, 1_000 + SETTLE_MS].map((now) => stillness.isSettled(now))).toEqual([
      false,
      false,
      true,
    ]);
  });

  it('begins anew where something else moves it, and not where the reader does', () => {
    const stillness = new Stillness();
    stillness.look(HERE, 0, false);
    stillness.look(THERE, 900, true);
    expect(stillness.isSettled(900)).toBe(true);
    stillness.look(HERE, 1_000, false);
    expect(stillness.isSettled(1_000)).toBe(false);
    expect(stillness.isSettled(1_000 + SETTLE_MS)).toBe(true);
  });

  it('begins anew when it was out of sight, also where the reader brought it back', () => {
    const stillness = new Stillness();
    stillness.look(HERE, 0, false);
    stillness.look(null, 900, false);
    expect(stillness.isSettled(2_000)).toBe(false);
    stillness.look(HERE, 2_000, true);
    expect(stillness.isSettled(2_100)).toBe(false);
    expect(stillness.isSettled(2_000 + SETTLE_MS)).toBe(true);
  });

  it('is not moved by a pixel or two, but by many of them one after the other', () => {
    const stillness = new Stillness();
    for (let step = 0; step <= 20; step += 1) stillness.look({ left: 0, top: step * 3 }, step * 100, false);
    expect(stillness.isSettled(2_100)).toBe(false);
    stillness.look({ left: 2, top: 58 }, 2_800, false);
    expect(stillness.isSettled(2_800)).toBe(true);
  });
});
