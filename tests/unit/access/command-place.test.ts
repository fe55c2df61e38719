import { expect, test } from 'vitest';
import { commandPlace } from '@/lib/server/access/command-place';

const root = '/home/me/interlude';
const started = (dataDir: string) => ({
  INTERLUDE_DATA_DIR: dataDir,
  INTERLUDE_RUNNER_TOKEN_FILE: `${dataDir}/runner-token`,
});

test('needs no prefix with the default configuration', () => {
  expect(commandPlace(started(`${root}/.interlude`), root)).toMatchObject({
    found: [],
    setting: '',
    token: '$(cat .interlude/runner-token)',
  });
});

test('needs no prefix where it is installed, and names its recording in full', () => {
  const installed = '/home/me/project/node_modules/interlude';
  expect(commandPlace({ ...started('/home/me/.interlude'), HOME: '/home/me' }, installed)).toMatchObject({
    setting: '',
    recording: `${installed}/lib/runner/cli/demo/recordings/test-run.jsonl`,
  });
});

test('quotes a custom data folder for the shell', () => {
  expect(commandPlace(started("/srv/it's"), root)).toMatchObject({
    found: [],
    setting: "INTERLUDE_DATA_DIR='/srv/it'\\''s' ",
    token: "$(cat '/srv/it'\\''s/runner-token')",
  });
  expect(commandPlace(started(`${root}/kept`), root).setting).toBe('INTERLUDE_DATA_DIR=kept ');
});

test('has no prefix and no token file when npm start did not start the server', () => {
  expect(commandPlace({ INTERLUDE_TOKEN: 'x' }, root)).toMatchObject({ setting: null, token: null, found: [] });
});
