import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectLiveIsReloaded, FEW_RECORDINGS, HIGH, RECORDINGS } from '../support/play-recording';
import { type OwnVisit, visitOwn } from '../support/visit';

let it: OwnVisit;
let watched: Page;
beforeAll(async () => {
  // coarse pixels, because drawing high windows takes most of the time
  it = await visitOwn({ chromium: { viewport: HIGH, deviceScaleFactor: 0.2 } });
  watched = await it.open('/');
});
afterAll(async () => {
  await it.close();
  expect(it.complaints).toEqual([]);
});

test.each(RECORDINGS.filter((name) => !FEW_RECORDINGS.includes(name)))(
  'a transcript that was watched live equals the one loaded afterwards: %s',
  (recording) => expectLiveIsReloaded(it, watched, recording),
);
