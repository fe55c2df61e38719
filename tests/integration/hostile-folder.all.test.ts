import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { runCli } from '../support/cli';
import { expectNothingRuns, expectSdkSeesNoSecret, hostileRepository } from '../support/hostile-repository';

test('a runner working in a hostile repository runs none of its code when started elsewhere', async () => {
  await expectNothingRuns(await hostileRepository(), process.cwd());
});

test('a runner runs no code of a hostile repository that contains the data folder', async () => {
  const hostile = await hostileRepository();
  await expectNothingRuns(hostile, hostile.repo, { INTERLUDE_DATA_DIR: join(hostile.repo, 'kept') });
});

test('hooks install resolves a data folder of ".interlude" in its own folder, not in a hostile one', async () => {
  const { repo, marks } = await hostileRepository();
  const settings = join(dirname(repo), 'settings.json');
  const env = { INTERLUDE_DATA_DIR: '.interlude' };
  expect(await runCli(['hooks', 'install', '--settings', settings], env, repo)).toMatchObject({ exitCode: 0 });
  const hooks = await readFile(settings, 'utf8');
  expect(hooks).toContain(join(process.cwd(), '.interlude'));
  expect(hooks).not.toContain(repo);
  expect(await marks()).toBe('');
});

test('a runner loads the Agent SDK of a named folder, and passes no secret to it or the agent', async () => {
  await expectSdkSeesNoSecret(
    await hostileRepository(),
    (home) => join(home, '..', 'named'),
    (sdk) => ['--sdk', sdk],
  );
});
