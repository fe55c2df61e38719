import type { Page } from 'playwright-core';
import { afterAll, beforeAll, test } from 'vitest';
import { perFile, visit } from '../support/visit';
import { expectLiveIsReloaded, FEW_RECORDINGS, HIGH } from '../support/watched-recording';

const it = perFile(visit);
let watched: Page;
beforeAll(async () => {
  watched = await it.open('/');
  await watched.setViewportSize(HIGH);
});
afterAll(async () => {
  await it.leave(watched);
});

test.each(FEW_RECORDINGS)('a transcript watched live equals the one loaded afterwards: %s', (recording) =>
  expectLiveIsReloaded(it, watched, recording),
);
