import { describe, expect, it } from 'vitest';
import { rowsAround, sectionsOf } from '@/components/transcript/item-rows';

const LIMITS = { head: 10, tail: 40 };

describe('the rows of a turn', () => {
  it('are all shown if they are few', () => {
    expect(sectionsOf(90, LIMITS)).toEqual([{ from: 0, to: 90, isShown: true }]);
  });

  it('are the first and last of ten thousand', () => {
    expect(sectionsOf(10_000, LIMITS)).toEqual([
      { from: 0, to: 10, isShown: true },
      { from: 10, to: 9_960, isShown: false },
      { from: 9_960, to: 10_000, isShown: true },
    ]);
  });

  it('include those the reader opened or was led to', () => {
    expect(sectionsOf(10_000, LIMITS, [[10, 210], rowsAround(5_000)])).toEqual([
      { from: 0, to: 210, isShown: true },
      { from: 210, to: 4_980, isShown: false },
      { from: 4_980, to: 5_020, isShown: true },
      { from: 5_020, to: 9_960, isShown: false },
      { from: 9_960, to: 10_000, isShown: true },
    ]);
  });

  it('are each in one section, in order', () => {
    for (const opened of [
      [[0, 5]],
      [[9_950, 20_000]],
      [[5, 9_970]],
      [
        [-20, 20],
        [15, 100],
        [90, 95],
      ],
    ] as [number, number][][]) {
      const stretches = sectionsOf(10_000, LIMITS, opened);
      expect(stretches[0]?.from).toBe(0);
      expect(stretches.at(-1)?.to).toBe(10_000);
      for (const [index, { from }] of stretches.entries()) if (index > 0) expect(from).toBe(stretches[index - 1]?.to);
    }
  });

  it('move at the end only now and then while the turn grows', () => {
    const starts = new Set(Array.from({ length: 80 }, (_, more) => sectionsOf(1_000 + more, LIMITS).at(-1)?.from));
    expect(starts.size).toBeLessThanOrEqual(3);
  });
});
