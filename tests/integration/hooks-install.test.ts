import { chmod, lstat, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hookEntries, SettingsError } from '@interlude/runner/hooks/hook-entries';
import { installHooks, uninstallHooks } from '@interlude/runner/hooks/settings-file';
import { beforeEach, describe, expect, test } from 'vitest';
import { callCli } from '../support/cli-in-process';
import { tempDir } from '../support/temp-dir';

const entries = hookEntries('/opt/interlude/hook.sh', '/data');
const UNUSUAL = '{ "model" : "opus",\n\n\t"hooks": { "Stop": [ ] } , "x": [1,2 , 3]}';

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await tempDir();
  file = join(folder, 'settings.json');
});

describe('a settings file', () => {
  test('is restored byte for byte after install and uninstall', async () => {
    await writeFile(file, UNUSUAL, { mode: 0o640 });
    expect(await installHooks(file, entries)).toBe('changed');
    expect(await installHooks(file, entries)).toBe('unchanged');
    expect((await stat(file)).mode & 0o777).toBe(0o640);
    expect(await readFile(`${file}.interlude-backup`, 'utf8')).toBe(UNUSUAL);
    expect(await uninstallHooks(file, entries)).toBe('changed');
    expect(await readFile(file, 'utf8')).toBe(UNUSUAL);
    expect(await readdir(folder)).toEqual(['settings.json']);
    expect(await uninstallHooks(file, entries)).toBe('unchanged');
  });

  test('is created when missing, and removed afterwards', async () => {
    const deep = join(folder, 'a', 'b', 'settings.json');
    await installHooks(deep, entries);
    expect(Object.keys(JSON.parse(await readFile(deep, 'utf8')).hooks)).toHaveLength(11);
    await uninstallHooks(deep, entries);
    expect(await readdir(join(folder, 'a', 'b'))).toEqual([]);
  });

  test('keeps later changes', async () => {
    await writeFile(file, UNUSUAL);
    await installHooks(file, entries);
    await writeFile(file, (await readFile(file, 'utf8')).replace('"opus"', '"sonnet"'));
    await uninstallHooks(file, entries);
    expect(await readFile(file, 'utf8')).toBe(UNUSUAL.replace('"opus"', '"sonnet"'));
  });

  test('stays a link, and keeps its first backup across installs of other agents', async () => {
    const target = join(folder, 'dotfiles.json');
    await writeFile(target, UNUSUAL);
    await symlink(target, file);
    await installHooks(file, entries);
    await installHooks(file, hookEntries('/elsewhere/hook.sh', '/data'));
    expect((await lstat(file)).isSymbolicLink()).toBe(true);
    expect(await readFile(`${target}.interlude-backup`, 'utf8')).toBe(UNUSUAL);
    await uninstallHooks(file, entries);
    expect(await readFile(target, 'utf8')).toBe(UNUSUAL);
  });

  test.each(['', ' \n\t\n'])('counts as empty when it contains %j', async (text) => {
    await writeFile(file, text, { mode: 0o640 });
    expect(await uninstallHooks(file, entries)).toBe('unchanged');
    expect(await installHooks(file, entries)).toBe('changed');
    expect(Object.keys(JSON.parse(await readFile(file, 'utf8')).hooks)).toHaveLength(11);
    expect(await installHooks(file, entries)).toBe('unchanged');
    expect(await uninstallHooks(file, entries)).toBe('changed');
    expect((await readFile(file, 'utf8')).trim()).toBe('');
    expect((await stat(file)).mode & 0o777).toBe(0o640);
    expect(await readdir(folder)).toEqual(['settings.json']);
  });

  test.each(['no JSON', '{"a":1,}', '[]', '{"hooks":7}'])(
    'is left unchanged with a clear error when it contains %j',
    async (text) => {
      await writeFile(file, text);
      await expect(installHooks(file, entries)).rejects.toThrow(SettingsError);
      await expect(installHooks(file, entries)).rejects.toThrow(`${file} `);
      expect(await readFile(file, 'utf8')).toBe(text);
      expect(await readdir(folder)).toEqual(['settings.json']);
    },
  );

  test('is left unchanged when it is not UTF-8', async () => {
    const bytes = Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]);
    await writeFile(file, bytes);
    await expect(installHooks(file, entries)).rejects.toThrow('is not UTF-8');
    expect(await readFile(file)).toEqual(bytes);
  });

  test('is left unchanged when it can’t be replaced', async () => {
    const folderInPlace = join(folder, 'a-folder');
    await mkdir(folderInPlace);
    await chmod(folderInPlace, 0o700);
    await expect(installHooks(folderInPlace, entries)).rejects.toThrow("can't be changed (EISDIR)");
  });
});

describe('the command', () => {
  test('finds the settings of Claude Code, or uses the named file', async () => {
    const env = { CLAUDE_CONFIG_DIR: folder, INTERLUDE_DATA_DIR: join(folder, 'data') };
    expect(await callCli(['hooks', 'install'], env)).toMatchObject({ exitCode: 0, stderr: '' });
    expect(await readFile(file, 'utf8')).toContain(join(folder, 'data'));
    expect(await callCli(['hooks', 'uninstall'], env)).toMatchObject({ exitCode: 0 });
    expect(await readdir(folder)).toEqual([]);
    const other = join(folder, 'other.json');
    await writeFile(other, 'no JSON');
    const { exitCode, stderr } = await callCli(['hooks', 'install', '--settings', other], env);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /^interlude: .*other\.json is not JSON \(.*\); the file is unchanged: fix it, then try again\n$/,
    );
    expect((await callCli(['hooks'], env)).exitCode).toBe(2);
  });
});
