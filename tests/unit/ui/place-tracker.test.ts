import { describe, expect, it } from 'vitest';
import { PlaceTracker, SETTLE_MS } from '@/components/ui/misclick-guard';

const HERE = { left: 10, top: 100 };
const THERE = { left: 10, top: 140 };
const NONE = { left: 0, top: 0 };
/** From `HERE` to `THERE`. */
const SCROLLED = { left: 0, top: 40 };

describe('PlaceTracker', () => {
  it('settles after SETTLE_MS in one place', () => {
    const tracker = new PlaceTracker();
    expect(tracker.isSettled(5_000)).toBe(false);
    tracker.update(HERE, 1_000, NONE);
    expect([1_000, 1_000 + SETTLE_MS - 1, 1_000 + SETTLE_MS].map((now) => tracker.isSettled(now))).toEqual([
      false,
      false,
      true,
    ]);
  });

  it('restarts when something other than the reader moves the element', () => {
    const tracker = new PlaceTracker();
    tracker.update(HERE, 0, NONE);
    tracker.update(THERE, 900, SCROLLED);
    expect(tracker.isSettled(900)).toBe(true);
    tracker.update(HERE, 1_000, NONE);
    expect(tracker.isSettled(1_000)).toBe(false);
    expect(tracker.isSettled(1_000 + SETTLE_MS)).toBe(true);
  });

  it('restarts when the element moves farther than the reader scrolled, or in another direction', () => {
    for (const scrolled of [
      { left: 0, top: -1 },
      { left: 0, top: 20 },
      { left: 40, top: 0 },
      { left: 0, top: -40 },
    ]) {
      const tracker = new PlaceTracker();
      tracker.update(HERE, 0, NONE);
      tracker.update(THERE, 900, scrolled);
      expect(tracker.isSettled(900)).toBe(false);
      expect(tracker.isSettled(900 + SETTLE_MS)).toBe(true);
    }
  });

  it('stays settled when scroll anchoring keeps the element in place', () => {
    const tracker = new PlaceTracker();
    tracker.update(HERE, 0, NONE);
    tracker.update(HERE, 900, SCROLLED);
    tracker.update(HERE, 1_000, NONE);
    expect(tracker.isSettled(1_000)).toBe(true);
  });

  it('adds up small moves during a scroll', () => {
    const tracker = new PlaceTracker();
    for (let step = 0; step <= 20; step += 1) {
      tracker.update({ left: 0, top: step * -97 }, step * 100, { left: 0, top: step === 0 ? 0 : -100 });
    }
    expect(tracker.isSettled(2_000)).toBe(false);
  });

  it('restarts when the element was out of sight, even if the reader scrolled it back', () => {
    const tracker = new PlaceTracker();
    tracker.update(HERE, 0, NONE);
    tracker.update(null, 900, NONE);
    expect(tracker.isSettled(2_000)).toBe(false);
    tracker.update(HERE, 2_000, SCROLLED);
    expect(tracker.isSettled(2_100)).toBe(false);
    expect(tracker.isSettled(2_000 + SETTLE_MS)).toBe(true);
  });

  it('ignores a move of a pixel or two, but not many of them', () => {
    const tracker = new PlaceTracker();
    for (let step = 0; step <= 20; step += 1) tracker.update({ left: 0, top: step * 3 }, step * 100, NONE);
    expect(tracker.isSettled(2_100)).toBe(false);
    tracker.update({ left: 2, top: 58 }, 2_800, NONE);
    expect(tracker.isSettled(2_800)).toBe(true);
  });
});
