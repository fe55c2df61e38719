import { describe, expect, it } from 'vitest';
import { SeenRanges } from '@/components/requests/request-input';

function seen(...stretches: [from: number, to: number, width?: number][]): boolean {
  const all = new SeenRanges();
  for (const [from, to, width = 500] of stretches) all.see(from, to, width);
  return all.isAllSeen(300);
}

describe('SeenRanges', () => {
  it('is complete once every part was in sight, in any order', () => {
    expect(seen([0, 300])).toBe(true);
    expect(seen([200, 300], [0, 100], [90, 210])).toBe(true);
    expect(seen([0.4, 100], [100.5, 299.5])).toBe(true);
  });

  it('is incomplete without the beginning, the middle or the end', () => {
    expect(seen()).toBe(false);
    expect(seen([200, 300])).toBe(false);
    expect(seen([0, 200])).toBe(false);
    expect(seen([0, 100], [200, 300])).toBe(false);
    expect(seen([100, 100], [200, 150])).toBe(false);
  });

  it('resets when the width changes', () => {
    expect(seen([0, 200], [150, 300, 400])).toBe(false);
    expect(seen([0, 200], [0, 150, 400], [150, 300, 400])).toBe(true);
  });
});
