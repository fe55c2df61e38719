import { join } from 'node:path';
import { test } from 'vitest';
import { expectNothingRuns, expectSdkSeesNoSecret, hostileRepository } from '../support/hostile-repository';

test('a runner started in a hostile repository runs none of its code', async () => {
  const hostile = await hostileRepository();
  await expectNothingRuns(hostile, hostile.repo);
});

test('a runner loads the Agent SDK of the data folder, and passes no secret to it or the agent', async () => {
  const hostile = await hostileRepository();
  await expectSdkSeesNoSecret(
    hostile,
    (home) => join(home, 'agents'),
    () => [],
  );
});
