import { test } from 'vitest';
import { expectPinnedUntilSeen } from '../support/asked-out-of-view';
import { perFile, visit } from '../support/visit';

const it = perFile(visit);

test.each([
  [740, 360],
  [800, 300],
])(
  'pins a request whose head is out of view, and enables Allow only once its head was seen, at %i × %i',
  (width, height) => expectPinnedUntilSeen(it, width, height, null),
);
