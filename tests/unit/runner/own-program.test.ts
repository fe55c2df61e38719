import { mkdir, realpath, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { shellWord } from '@interlude/protocol/shell-word.mjs';
import { callerFolder, displayPath, interludeCommand, npmCommand } from '@interlude/runner/host/own-program.mjs';
import { expect, test } from 'vitest';
import { tempDir } from '../../support/temp-dir';

const root = process.cwd();
const byNpm = { npm_lifecycle_event: 'interlude', npm_package_json: join(root, 'package.json') };

test('prints an npx command in the project, and npm commands below its folder', () => {
  const inner = join(root, 'lib', 'server');
  expect(interludeCommand(['hooks', 'install'], {}, { folder: root })).toBe('npx interlude hooks install');
  expect(interludeCommand(['demo'], {}, { folder: inner })).toBe('npm run -s interlude -- demo');
  for (const folder of [root, inner]) expect(npmCommand(['start'], { folder })).toBe('npm start');
});

test('names the project elsewhere, and in nested packages', async () => {
  const folder = await tempDir();
  expect(interludeCommand(['demo'], {}, { folder })).toBe(`npm --prefix ${root} run -s interlude -- demo`);
  await mkdir(join(folder, 'below'));
  await writeFile(join(folder, 'package.json'), '{}');
  expect(npmCommand(['ci'], { folder: join(folder, 'below') })).toBe(`npm --prefix ${root} ci`);
});

test("prints the program's name if it is on the PATH", async () => {
  const folder = await tempDir();
  const reader = { folder, program: '/opt/bin/interlude', path: '/bin:/opt/bin' };
  expect(interludeCommand(['demo'], {}, reader)).toBe('interlude demo');
  expect(interludeCommand(['demo'], {}, { ...reader, path: '/bin' })).toContain('npm --prefix');
  const byNpx = { folder: root, program: '/cache/node_modules/.bin/interlude', path: '/cache/node_modules/.bin' };
  expect(interludeCommand(['demo'], {}, byNpx)).toBe('npx interlude demo');
});

test('repeats the data folder, and quotes arguments', () => {
  const env = { INTERLUDE_DATA_DIR: "it's here" };
  expect(interludeCommand(['replay', 'a b.jsonl'], env, { folder: root })).toBe(
    `INTERLUDE_DATA_DIR='it'\\''s here' npx interlude replay 'a b.jsonl'`,
  );
  expect(shellWord('$HOME')).toBe("'$HOME'");
});

test("uses npm's INIT_CWD only in the process that npm started", async () => {
  const away = await realpath(await tempDir());
  const env = { ...byNpm, INIT_CWD: away };
  expect(callerFolder(env, root)).toBe(away);
  expect(callerFolder({ ...env, npm_lifecycle_event: 'start' }, root)).toBe(away);
  expect(callerFolder({ ...env, npm_lifecycle_event: 'test' }, root)).toBe(root);
  expect(callerFolder({ ...env, npm_package_json: '/other/package.json' }, root)).toBe(root);
  expect(callerFolder({ ...env, INIT_CWD: join(away, 'gone') }, root)).toBe(root);
  expect(callerFolder(env, '/tmp')).toBe('/tmp');
});

test('prints a path relative to the folder if it is below', () => {
  expect(displayPath('/a/b/c', '/a')).toBe('b/c');
  expect(displayPath('/a', '/a')).toBe('/a');
  expect(displayPath('/b', '/a')).toBe('/b');
  expect(displayPath('/a/..b', '/a')).toBe('..b');
});
