import { describe, expect, it } from 'vitest';
import { SeenRanges } from '@/components/requests/request-input';

function seen(...stretches: [from: number, to: number, width?: number][]): boolean {
  const all = new SeenRanges();
  for (const [from, to, width = 500] of stretches) all.see(from, to, width);
  return all.isAllSeen(300);
}

describe('what is taller than what can be seen of it', () => {
  it('has been seen once every stretch of it was, in whatever order', () => {
    expect(seen([0, 300])).toBe(true);
    expect(seen([200, 300], [0, 100], [90, 210])).toBe(true);
    expect(seen([0.4, 100], [100.5, 299.5])).toBe(true);
  });

  it('has not been while its head, its end or what is between them was not', () => {
    expect(seen()).toBe(false);
    expect(seen([200, 300])).toBe(false);
    expect(seen([0, 200])).toBe(false);
    expect(seen([0, 100], [200, 300])).toBe(false);
    expect(seen([100, 100], [200, 150])).toBe(false);
  });

  it('has to be seen anew where its lines wrap elsewhere', () => {
    expect(seen([0, 200], [150, 300, 400])).toBe(false);
    expect(seen([0, 200], [0, 150, 400], [150, 300, 400])).toBe(true);
  });
});
