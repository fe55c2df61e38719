import { processState } from '@interlude/protocol/process-state.mjs';
import { expect, onTestFinished, test } from 'vitest';
import { commandPlace, findLocalAgents } from '@/lib/server/access/command-place';

const root = '/home/me/interlude';
const started = (dataDir: string) => ({
  INTERLUDE_DATA_DIR: dataDir,
  INTERLUDE_RUNNER_TOKEN_FILE: `${dataDir}/runner-token`,
});

test('needs no prefix with the default configuration', () => {
  expect(commandPlace(started(`${root}/.interlude`), root)).toMatchObject({
    isLocal: true,
    folder: root,
    setting: '',
    token: '$(cat .interlude/runner-token)',
  });
});

test('needs no prefix where it is installed, and names its recording in full', () => {
  const installed = '/home/me/project/node_modules/interlude';
  expect(commandPlace({ ...started('/home/me/.interlude'), HOME: '/home/me' }, installed)).toMatchObject({
    folder: '/home/me/project',
    setting: '',
    recording: `${installed}/lib/runner/cli/demo/recordings/test-run.jsonl`,
  });
});

test('quotes a custom data folder for the shell', () => {
  expect(commandPlace(started("/srv/it's"), root)).toMatchObject({
    isLocal: true,
    setting: "INTERLUDE_DATA_DIR='/srv/it'\\''s' ",
    token: "$(cat '/srv/it'\\''s/runner-token')",
  });
  expect(commandPlace(started(`${root}/kept`), root).setting).toBe('INTERLUDE_DATA_DIR=kept ');
});

test('has no prefix and no token file when npm start did not start the server', () => {
  expect(commandPlace({ INTERLUDE_TOKEN: 'x' }, root)).toMatchObject({ setting: null, token: null, isLocal: false });
});

test.each([
  [{ HOST: '0.0.0.0' }],
  [{ INTERLUDE_PUBLIC_URL: 'https://interlude.example' }],
  [{ INTERLUDE_ALLOWED_HOSTS: 'interlude.example' }],
  [{ INTERLUDE_TRUSTED_PROXY: '127.0.0.1' }],
])('does not look at this machine for readers of another: %o', async (setting) => {
  processState().findAgents = async () => [{ id: 'codex', at: '/usr/bin/codex' }];
  onTestFinished(() => {
    processState().findAgents = null;
  });
  const local = { ...started(`${root}/.interlude`), HOST: '127.0.0.1' };
  expect(await findLocalAgents(commandPlace(local, root))).toEqual([{ id: 'codex', at: '/usr/bin/codex' }]);
  expect(await findLocalAgents(commandPlace({ ...local, ...setting }, root))).toBe(null);
});
