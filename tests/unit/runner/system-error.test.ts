import { formatError } from '@interlude/runner/host/system-error.mjs';
import { expect, test } from 'vitest';

const failed = (about: object) => Object.assign(new Error('raw\nwords'), about);

test.each([
  ['SQLITE_READONLY_DIRECTORY', "can't write to /data; check that you own it"],
  ['SQLITE_CANTOPEN', "can't write to /data; check that you own it"],
  ['SQLITE_IOERR_WRITE', 'the disk of /data is failing; check it'],
  ['SQLITE_FULL', 'the disk of /data is full; free some space there'],
])('explains %s of a database in the data folder', (code, words) => {
  expect(formatError(failed({ code }), '/data')).toMatch(
    new RegExp(`^${words}.*, or set INTERLUDE_DATA_DIR to a folder elsewhere, then try again$`),
  );
});

test('suggests another data folder only for write errors inside it', () => {
  expect(formatError(failed({ code: 'EACCES', syscall: 'open', path: '/elsewhere/file' }), '/data')).toBe(
    'no permission for /; change its owner or mode, then try again',
  );
  for (const code of ['ENOENT', 'EEXIST', 'ENOTDIR']) {
    expect(formatError(failed({ code, syscall: 'open', path: '/data/file' }), '/data')).toBe('raw words');
  }
  expect(formatError(failed({ code: 'SQLITE_CORRUPT' }), '/data')).toBe('raw words');
  expect(formatError(failed({}), '/data')).toBe('raw words');
  expect(formatError(failed({ code: 20 }), '/data')).toBe('raw words');
  expect(formatError(failed({ code: 'EACCES', syscall: 'spawn claude', path: 'claude' }), '/data')).toBe('raw words');
  expect(formatError('no error at all')).toBe('no error at all');
});
