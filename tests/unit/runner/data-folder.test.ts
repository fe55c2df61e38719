import { chmod, chown, mkdir, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { checkDataFolder, makePrivate, readPrivate } from '@/lib/runner/data-folder.mjs';
import { tempDir } from '../../support/temp-dir';

const uid = process.geteuid?.() ?? -1;
const isRoot = uid === 0;

/** A data folder as one is left by a server and its runners, readable by everybody. */
async function readable(): Promise<string> {
  const folder = join(await tempDir(), 'data');
  for (const name of ['', 'outboxes', 'logs', 'control', 'agents']) {
    await mkdir(join(folder, name), { mode: 0o755 });
    await writeFile(join(folder, name, 'a-file'), 'kept', { mode: 0o644 });
  }
  await writeFile(join(folder, 'token'), 'a-token-of-sixteen-characters\n', { mode: 0o644 });
  return folder;
}

const modeOf = async (path: string) => ((await stat(path)).mode & 0o7777).toString(8);

test('a data folder that others can read is closed to them, with all that is in it', async () => {
  const folder = await readable();
  checkDataFolder(folder);
  for (const name of ['', 'outboxes', 'logs', 'control', 'agents']) {
    expect(await modeOf(join(folder, name)), name).toBe('700');
    if (name !== 'agents') expect(await modeOf(join(folder, name, 'a-file')), name).toBe('600');
  }
  expect(await modeOf(join(folder, 'token'))).toBe('600');
});

test('what npm makes in a closed data folder where the umask lets the group write is closed, not refused', async () => {
  const folder = await readable();
  checkDataFolder(folder);
  await chmod(join(folder, 'agents'), 0o775);
  checkDataFolder(folder);
  expect(await modeOf(join(folder, 'agents'))).toBe('700');
});

describe('is refused in one line:', () => {
  const refusal = (folder: string, as?: number) => {
    try {
      checkDataFolder(folder, as);
      return null;
    } catch (error) {
      return (error as Error).message;
    }
  };

  test.each([
    [0o770, ''],
    [0o702, ''],
    [0o1777, ''],
    [0o777, 'outboxes'],
    [0o775, 'agents'],
    [0o777, 'agents/node_modules'],
  ])('a folder that others can write, %o of "%s"', async (mode, name) => {
    const folder = await readable();
    await mkdir(join(folder, name), { recursive: true });
    await chmod(join(folder, name), mode);
    expect(refusal(folder)).toMatch(
      /^other users can write in \S+; look that what is in it is yours and run "chmod go-w"/,
    );
  });

  test('a folder elsewhere that others can write, which a closed one links to', async () => {
    const folder = await readable();
    const elsewhere = join(await tempDir(), 'elsewhere');
    await mkdir(elsewhere);
    await chmod(elsewhere, 0o775);
    checkDataFolder(folder);
    await symlink(elsewhere, join(folder, 'linked'));
    expect(refusal(folder)).toMatch(/^other users can write in \S+linked;/);
  });

  test('a folder of another owner', async () => {
    expect(refusal(await readable(), uid + 1)).toMatch(
      /^\S+data belongs to another user \(\d+\), who could change it;/,
    );
  });

  test.runIf(isRoot).each(['token', 'interlude.db', 'outboxes/runner.db', 'logs', 'agents'])(
    '%s of another owner',
    async (name) => {
      const folder = await readable();
      if (!/^(logs|agents)$/.test(name)) await writeFile(join(folder, name), '');
      await chown(join(folder, name), 4_711, 4_711);
      expect(refusal(folder)).toBe(
        `${join(folder, name)} belongs to another user (4711), who could change it; make it yours with "chown" if you trust what is in it, or set INTERLUDE_DATA_DIR to another folder`,
      );
    },
  );
});

test('a folder that is not there is not made, and a file in its place is left to others', async () => {
  const folder = join(await tempDir(), 'data');
  checkDataFolder(folder);
  await expect(stat(folder)).rejects.toThrow('ENOENT');
  await writeFile(folder, '');
  checkDataFolder(folder);
});

test('a file that is written or read alone is closed likewise, and refused where it is another’s', async () => {
  const file = join(await tempDir(), 'token');
  await writeFile(file, 'text', { mode: 0o644 });
  expect(readPrivate(file)).toBe('text');
  expect(await modeOf(file)).toBe('600');
  await chmod(file, 0o640);
  makePrivate(file);
  expect(await modeOf(file)).toBe('600');
  expect(readPrivate(file)).toBe('text');
  if (!isRoot) return;
  await chown(file, 4_711, 4_711);
  expect(() => readPrivate(file)).toThrow('belongs to another user (4711)');
  expect(() => makePrivate(file)).toThrow('belongs to another user (4711)');
});
