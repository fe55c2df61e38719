import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { chmod, chown, mkdir, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { checkDataFolder, makePrivate, readPrivate, removeStaleDrafts } from '@interlude/runner/host/data-folder.mjs';
import { createClient } from '@libsql/client';
import { describe, expect, test } from 'vitest';
import { visitDatabase } from '@/tests/support/database';
import { tempDir } from '@/tests/support/temp-dir';

const uid = process.geteuid?.() ?? -1;
const isRoot = uid === 0;

/** A data folder of a server and its runners, readable by everyone. */
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

test('makes a readable data folder private, with all its files', async () => {
  const folder = await readable();
  checkDataFolder(folder);
  for (const name of ['', 'outboxes', 'logs', 'control', 'agents']) {
    expect(await modeOf(join(folder, name)), name).toBe('700');
    if (name !== 'agents') expect(await modeOf(join(folder, name, 'a-file')), name).toBe('600');
  }
  expect(await modeOf(join(folder, 'token'))).toBe('600');
});

test('makes group-writable folders private inside a private data folder', async () => {
  const folder = await readable();
  checkDataFolder(folder);
  await chmod(join(folder, 'agents'), 0o775);
  checkDataFolder(folder);
  expect(await modeOf(join(folder, 'agents'))).toBe('700');
});

describe('refuses in one line', () => {
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
      /^other users can write to \S+; check that its files are yours and run "chmod go-w"/,
    );
  });

  test('a writable folder that a private one links to', async () => {
    const folder = await readable();
    const elsewhere = join(await tempDir(), 'elsewhere');
    await mkdir(elsewhere);
    await chmod(elsewhere, 0o775);
    checkDataFolder(folder);
    await symlink(elsewhere, join(folder, 'linked'));
    expect(refusal(folder)).toMatch(/^other users can write to \S+linked;/);
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

describe('a parent folder', () => {
  const refusal = (folder: string) => {
    try {
      checkDataFolder(folder);
      return null;
    } catch (error) {
      return (error as Error).message;
    }
  };
  const within = async (mode: number, ...path: string[]) => {
    const above = join(await tempDir(), 'above');
    await mkdir(join(above, ...path), { recursive: true, mode: 0o700 });
    await chmod(above, mode);
    return { above, folder: join(above, ...path, 'data') };
  };

  test.each([
    ['it stands in it', []],
    ['it stands deeper', ['one', 'two']],
  ])(
    'in which others can write is refused in one line, as they could put another in its place: %s',
    async (_, path) => {
      const { above, folder } = await within(0o777, ...path);
      const line = `other users can write to ${above}, who could replace ${folder}; run "chmod go-w" on it, or set INTERLUDE_DATA_DIR to a folder elsewhere`;
      // Before and after the folder exists.
      expect(refusal(folder)).toBe(line);
      await mkdir(folder, { mode: 0o700 });
      expect(refusal(folder)).toBe(line);
    },
  );

  test('is checked along the given and the resolved path', async () => {
    const { above, folder } = await within(0o777);
    await mkdir(folder, { mode: 0o700 });
    const closed = await tempDir();
    await symlink(folder, join(closed, 'linked'));
    expect(refusal(join(closed, 'linked'))).toContain(`can write to ${above},`);
    await symlink(closed, join(above, 'linked'));
    expect(refusal(join(above, 'linked', 'data'))).toContain(`can write to ${above},`);
  });

  test('is accepted if it is sticky, like /tmp', async () => {
    const { folder } = await within(0o1777);
    expect(refusal(folder)).toBeNull();
  });

  test.runIf(isRoot)("is accepted if only the user's own group can write to it", async () => {
    const { above, folder } = await within(0o775);
    expect(refusal(folder)).toBeNull();
    await chown(above, 0, 4_711);
    expect(refusal(folder)).toContain('other users can write to');
  });

  test('is checked at every link of the path', async () => {
    const { above } = await within(0o777);
    const [closed, own] = [await tempDir(), await tempDir()];
    await mkdir(join(own, 'data'), { mode: 0o700 });
    await symlink(own, join(above, 'middle'));
    await symlink(join(above, 'middle'), join(closed, 'first'));
    expect(refusal(join(closed, 'first', 'data'))).toContain(`can write to ${above},`);
    expect(refusal(join(own, 'data'))).toBeNull();
  });

  test.runIf(isRoot)("is accepted if root's group can write to it, for a user without a name", async () => {
    const { above, folder } = await within(0o775);
    await mkdir(folder, { mode: 0o700 });
    const nameless = 1_000_650_000;
    await chown(folder, nameless, 0);
    expect(() => checkDataFolder(folder, nameless)).not.toThrow();
    await chown(above, 0, 4_711);
    expect(() => checkDataFolder(folder, nameless)).toThrow('other users can write to');
  });

  test.runIf(isRoot)('is refused if another user owns it', async () => {
    const { above, folder } = await within(0o755);
    await chown(above, 4_711, 0);
    expect(refusal(folder)).toMatch(/^\S+above belongs to another user \(4711\), who could replace/);
  });
});

test('ignores a missing folder and a file in its place', async () => {
  const folder = join(await tempDir(), 'data');
  checkDataFolder(folder);
  await expect(stat(folder)).rejects.toThrow('ENOENT');
  await writeFile(folder, '');
  checkDataFolder(folder);
});

test('makes a single file private, and refuses one of another user', async () => {
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

test('makePrivate keeps the locks of this process on the file', async () => {
  const file = join(await tempDir(), 'outbox.db');
  makePrivate(file);
  const client = createClient({ url: `file:${file}` });
  await client.execute('PRAGMA journal_mode = WAL');
  await client.execute('CREATE TABLE t (a)');
  makePrivate(file);
  visitDatabase(file);
  expect((await stat(`${file}-wal`)).size).toBeGreaterThan(0);
  client.close();
});

test('removes drafts of killed processes only', async () => {
  const folder = await tempDir();
  const { pid: gone } = spawnSync(process.execPath, ['-e', '']);
  const kept = ['a', `a.${process.pid}`, 'a.bak', `a.${gone}.bak`, `ab.${gone}`, `b.${gone}`];
  for (const name of [...kept, `a.${gone}`]) writeFileSync(join(folder, name), '');
  mkdirSync(join(folder, `next.${gone}`));
  writeFileSync(join(folder, `next.${gone}`, 'page'), '');
  removeStaleDrafts(join(folder, 'a'));
  removeStaleDrafts(join(folder, 'next'));
  expect(readdirSync(folder).sort()).toEqual(kept.sort());
  removeStaleDrafts(join(folder, 'a'), /^(\d+)\.bak$/);
  expect(readdirSync(folder)).not.toContain(`a.${gone}.bak`);
  expect(() => removeStaleDrafts(join(folder, 'nowhere', 'a'))).not.toThrow();
});
