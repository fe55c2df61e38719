import { expect, test } from 'vitest';
import { TtlCache } from '@/lib/server/access/ttl-cache';

let [now, looks] = [0, 0];
const look = async () => {
  looks += 1;
  const mine = looks;
  await new Promise((resolve) => setTimeout(resolve, 0));
  return mine;
};

test.each([true, false])(
  'a value is looked up once while it is fresh, and again after that (shared: %s)',
  async (isShared) => {
    [now, looks] = [1_000, 0];
    const kept = new TtlCache<number>(isShared);
    const ask = () =>
      kept.get(
        () => now,
        look,
        () => 500,
      );
    expect(await ask()).toBe(1);
    now = 1_499;
    expect(await ask()).toBe(1);
    now = 1_500;
    expect(await ask()).toBe(2);
  },
);

test.each([
  [true, [1, 1, 1]],
  [false, [1, 2, 3]],
])('concurrent callers wait for the same look-up, or for none (shared: %s)', async (isShared, answers) => {
  looks = 0;
  const kept = new TtlCache<number>(isShared);
  expect(
    await Promise.all(
      [1, 2, 3].map(() =>
        kept.get(
          () => 0,
          look,
          () => 500,
        ),
      ),
    ),
  ).toEqual(answers);
});

test('a failed look-up is not cached', async () => {
  const kept = new TtlCache<string>();
  const fail = () =>
    kept.get(
      () => 0,
      () => Promise.reject(new Error('away')),
      () => 500,
    );
  await expect(Promise.all([fail(), fail()])).rejects.toThrow('away');
  expect(
    await kept.get(
      () => 0,
      async () => 'there',
      () => 500,
    ),
  ).toBe('there');
});
