import type { Page } from 'playwright-core';
import { afterAll, beforeAll, test } from 'vitest';
import { expectLiveIsReloaded, FEW_RECORDINGS, HIGH } from '../support/play-recording';
import { perFile, visit } from '../support/visit';

const it = perFile(visit);
let watched: Page;
beforeAll(async () => {
  watched = await it.open('/');
  await watched.setViewportSize(HIGH);
});
afterAll(async () => {
  await it.leave(watched);
});

test.each(FEW_RECORDINGS)('a transcript that was watched live equals the one loaded afterwards: %s', (recording) =>
  expectLiveIsReloaded(it, watched, recording),
);
