import { expect, test } from 'vitest';
import { commandPlace } from '@/lib/server/access/command-place';

const root = '/home/me/interlude';
const started = (dataDir: string) => ({
  INTERLUDE_DATA_DIR: dataDir,
  INTERLUDE_RUNNER_TOKEN_FILE: `${dataDir}/runner-token`,
});

test('with nothing configured a command needs nothing', () => {
  expect(commandPlace(started(`${root}/.interlude`), root)).toEqual({
    found: [],
    setting: '',
    token: '$(cat .interlude/runner-token)',
  });
});

test('a data folder of its own is named, as a shell takes it', () => {
  expect(commandPlace(started("/srv/it's"), root)).toEqual({
    found: [],
    setting: "INTERLUDE_DATA_DIR='/srv/it'\\''s' ",
    token: "$(cat '/srv/it'\\''s/runner-token')",
  });
  expect(commandPlace(started(`${root}/kept`), root).setting).toBe('INTERLUDE_DATA_DIR=kept ');
});

test('a server that npm start did not start has no folder, and no token in a file', () => {
  expect(commandPlace({ INTERLUDE_TOKEN: 'x' }, root)).toEqual({ setting: null, token: null, found: [] });
});
