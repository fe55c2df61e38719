import { test } from 'vitest';
import { expectPinnedUntilRead } from '../support/permission-card';
import { perFile, visit } from '../support/visit';

const it = perFile(visit);

test.each([
  [740, 360],
  [800, 300],
])(
  'pins a request of which only the end is in view, and allows it only once its head was seen, at %i × %i',
  (width, height) => expectPinnedUntilRead(it, width, height, null),
);
