import { describe, expect, it } from 'vitest';
import { SETTLE_MS, PlaceTracker } from '@/components/ui/misclick-guard';

const HERE = { left: 10, top: 100 };
const THERE = { left: 10, top: 140 };
const NOT = { left: 0, top: 0 };
/** The way from here to there. */
const SCROLLED = { left: 0, top: 40 };

describe('what can be pressed', () => {
  it('is settled once it has stood in its place for its time, and not before', () => {
    const stillness = new PlaceTracker();
    expect(stillness.isSettled(5_000)).toBe(false);
    stillness.look(HERE, 1_000, NOT);
    expect([1_000, 1_000 + SETTLE_MS - 1, 1_000 + SETTLE_MS].map((now) => stillness.isSettled(now))).toEqual([
      false,
      false,
      true,
    ]);
  });

  it('begins anew where something else moves it, and not where the reader does', () => {
    const stillness = new PlaceTracker();
    stillness.look(HERE, 0, NOT);
    stillness.look(THERE, 900, SCROLLED);
    expect(stillness.isSettled(900)).toBe(true);
    stillness.look(HERE, 1_000, NOT);
    expect(stillness.isSettled(1_000)).toBe(false);
    expect(stillness.isSettled(1_000 + SETTLE_MS)).toBe(true);
  });

  it('begins anew where it was moved farther than the reader scrolled, or another way', () => {
    for (const scrolled of [
      { left: 0, top: -1 },
      { left: 0, top: 20 },
      { left: 40, top: 0 },
      { left: 0, top: -40 },
    ]) {
      const stillness = new PlaceTracker();
      stillness.look(HERE, 0, NOT);
      stillness.look(THERE, 900, scrolled);
      expect(stillness.isSettled(900)).toBe(false);
      expect(stillness.isSettled(900 + SETTLE_MS)).toBe(true);
    }
  });

  it('is in its place where the browser kept it there although something scrolled', () => {
    const stillness = new PlaceTracker();
    stillness.look(HERE, 0, NOT);
    stillness.look(HERE, 900, SCROLLED);
    stillness.look(HERE, 1_000, NOT);
    expect(stillness.isSettled(1_000)).toBe(true);
  });

  it('is moved by many small moves while the reader scrolls as by one', () => {
    const stillness = new PlaceTracker();
    for (let step = 0; step <= 20; step += 1) {
      stillness.look({ left: 0, top: step * -97 }, step * 100, { left: 0, top: step === 0 ? 0 : -100 });
    }
    expect(stillness.isSettled(2_000)).toBe(false);
  });

  it('begins anew when it was out of sight, also where the reader brought it back', () => {
    const stillness = new PlaceTracker();
    stillness.look(HERE, 0, NOT);
    stillness.look(null, 900, NOT);
    expect(stillness.isSettled(2_000)).toBe(false);
    stillness.look(HERE, 2_000, SCROLLED);
    expect(stillness.isSettled(2_100)).toBe(false);
    expect(stillness.isSettled(2_000 + SETTLE_MS)).toBe(true);
  });

  it('is not moved by a pixel or two, but by many of them one after the other', () => {
    const stillness = new PlaceTracker();
    for (let step = 0; step <= 20; step += 1) stillness.look({ left: 0, top: step * 3 }, step * 100, NOT);
    expect(stillness.isSettled(2_100)).toBe(false);
    stillness.look({ left: 2, top: 58 }, 2_800, NOT);
    expect(stillness.isSettled(2_800)).toBe(true);
  });
});
