import { describe, expect, it } from 'vitest';
import { readScrolls, type Scroller, shiftBetween } from '@/components/ui/misclick-guard';

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
