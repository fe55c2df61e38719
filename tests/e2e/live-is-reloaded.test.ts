import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Visit, visit } from '../support/visit';
import { expectLiveIsReloaded, FEW_RECORDINGS, HIGH } from '../support/watched-recording';

let it: Visit;
let watched: Page;
beforeAll(async () => {
  it = await visit();
  watched = await it.open('/');
  await watched.setViewportSize(HIGH);
});
afterAll(async () => {
  await it.leave(watched);
  await it.close();
  expect(it.complaints).toEqual([]);
});

test.each(FEW_RECORDINGS)('a transcript that was watched live equals the one loaded afterwards: %s', (recording) =>
  expectLiveIsReloaded(it, watched, recording),
);
