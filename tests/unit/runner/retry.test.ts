import { retryMs } from '@interlude/runner/host/server-request';
import fc from 'fast-check';
import { expect, test } from 'vitest';

test('the wait after the k-th failure lies between half and all of min(10 s, 1 s · 2^(k−1))', () => {
  const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5_000 }), random, (failures, chance) => {
      const longest = Math.min(10_000, 1_000 * 2 ** (failures - 1));
      const wait = retryMs('unavailable', failures, chance);
      expect(wait).toBeGreaterThanOrEqual(longest / 2);
      expect(wait).toBeLessThanOrEqual(longest);
      expect(retryMs('unavailable', failures, chance, 8_000)).toBeLessThanOrEqual(8_000);
    }),
  );
});

test('a refused token is tried again every 15 to 30 seconds', () => {
  expect([0, 1].map((random) => retryMs('unauthorized', 3, random))).toEqual([15_000, 30_000]);
});
