import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectPinnedUntilSeen } from '../support/asked-out-of-view';
import { type Visit, visit } from '../support/visit';

let it: Visit;
beforeAll(async () => {
  it = await visit();
});
afterAll(async () => {
  await it.close();
  expect(it.complaints).toEqual([]);
});

test.each([
  [740, 360],
  [800, 300],
])(
  'pins a request of which only the end is in view, and allows it only once its head was seen, at %i × %i',
  (width, height) => expectPinnedUntilSeen(it, width, height, null),
);
