import { describe, expect, it } from 'vitest';
import { PlaceTracker, readScrolls, type Scroller, SETTLE_MS, shiftBetween } from '@/components/ui/misclick-guard';

/** A box 400 pixels high. */
function box(scrollTop: number, scrollHeight = 1_000): Scroller {
  return { scrollLeft: 0, scrollTop, scrollWidth: 300, scrollHeight, clientWidth: 300, clientHeight: 400 };
}

/** @param boxes each before and after */
function shiftOf(...boxes: [Scroller, Scroller][]): number {
  const befores = boxes.map(([before]) => before);
  const before = readScrolls(befores);
  for (const [one, after] of boxes) Object.assign(one, after);
  return shiftBetween(before, readScrolls(befores)).top;
}

describe('shiftBetween', () => {
  it('returns the opposite of the scroll, summed over all ancestors', () => {
    expect(shiftOf([box(100), box(160)])).toBe(-60);
    expect(shiftOf([box(160), box(100)])).toBe(60);
    expect(shiftOf([box(100), box(160)], [box(0), box(5)])).toBe(-65);
  });

  it('returns zero without a scroll', () => {
    expect(shiftOf([box(0, 400), box(0, 400)])).toBeCloseTo(0);
    expect(shiftOf([box(100), box(100, 883)])).toBeCloseTo(0);
    expect(shiftBetween(new Map(), readScrolls([box(100)]))).toEqual({ left: 0, top: 0 });
  });

  it('ignores a page that follows new content at the end', () => {
    expect(shiftOf([box(600), box(717, 1_117)])).toBeCloseTo(0);
    expect(shiftOf([box(590), box(717, 1_117)])).toBeCloseTo(0);
    // The reader scrolls to the old end while content arrives.
    expect(shiftOf([box(500), box(600, 1_117)])).toBe(-100);
  });

  it('ignores a browser that clamps after content was removed', () => {
    expect(shiftOf([box(600), box(483, 883)])).toBeCloseTo(0);
  });
});

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
