import { mkdir, realpath, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { shellWord } from '@interlude/protocol/shell-word.mjs';
import { callerFolder, displayPath, interludeCommand, npmCommand } from '@interlude/runner/host/own-program.mjs';
import { expect, test } from 'vitest';
import { tempDir } from '../../support/temp-dir';

const root = process.cwd();
const byNpm = { npm_lifecycle_event: 'interlude', npm_package_json: join(root, 'package.json') };

test('in the project, or below it, a command is npm’s own there', () => {
  for (const folder of [root, join(root, 'lib', 'server')]) {
    expect(interludeCommand(['hooks', 'install'], {}, { folder })).toBe('npm run -s interlude -- hooks install');
    expect(npmCommand(['start'], { folder })).toBe('npm start');
  }
});

test('elsewhere, and in a folder below that has packages of its own, it names the project', async () => {
  const folder = await tempDir();
  expect(interludeCommand(['demo'], {}, { folder })).toBe(`npm --prefix ${root} run -s interlude -- demo`);
  await mkdir(join(folder, 'below'));
  await writeFile(join(folder, 'package.json'), '{}');
  expect(npmCommand(['ci'], { folder: join(folder, 'below') })).toBe(`npm --prefix ${root} ci`);
});

test('called by its own name from the PATH, it is said by that name', async () => {
  const folder = await tempDir();
  const reader = { folder, program: '/opt/bin/interlude', path: '/bin:/opt/bin' };
  expect(interludeCommand(['demo'], {}, reader)).toBe('interlude demo');
  expect(interludeCommand(['demo'], {}, { ...reader, path: '/bin' })).toContain('npm --prefix');
});

test('a data folder that was named is named again, and what a shell would take apart is quoted', () => {
  const env = { INTERLUDE_DATA_DIR: "it's here" };
  expect(interludeCommand(['replay', 'a b.jsonl'], env, { folder: root })).toBe(
    `INTERLUDE_DATA_DIR='it'\\''s here' npm run -s interlude -- replay 'a b.jsonl'`,
  );
  expect(shellWord('$HOME')).toBe("'$HOME'");
});

test('a person stands where npm was called, if it was npm that started this very process', async () => {
  const away = await realpath(await tempDir());
  const env = { ...byNpm, INIT_CWD: away };
  expect(callerFolder(env, root)).toBe(away);
  expect(callerFolder({ ...env, npm_lifecycle_event: 'start' }, root)).toBe(away);
  expect(callerFolder({ ...env, npm_lifecycle_event: 'test' }, root)).toBe(root);
  expect(callerFolder({ ...env, npm_package_json: '/other/package.json' }, root)).toBe(root);
  expect(callerFolder({ ...env, INIT_CWD: join(away, 'gone') }, root)).toBe(root);
  expect(callerFolder(env, '/tmp')).toBe('/tmp');
});

test('a path is relative where it is below, else whole', () => {
  expect(displayPath('/a/b/c', '/a')).toBe('b/c');
  expect(displayPath('/a', '/a')).toBe('/a');
  expect(displayPath('/b', '/a')).toBe('/b');
  expect(displayPath('/a/..b', '/a')).toBe('..b');
});
