import { existsSync } from 'node:fs';
import { link, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { CliError, EXIT } from '@interlude/runner/cli/command';
import { errorCode } from '@interlude/runner/host/system-error.mjs';

const UNFINISHED = '.unfinished';
/** A draft that nobody has written to for so long is nobody's. */
const LEFT_MS = 60 * 60_000;

/**
 * Makes a file that only its owner can read, beside its place, and puts it there when it is whole and on the disk.
 *
 * Failure: nothing that is there is written over, and of several that make the same file at once, one does. If `make`
 * fails, nothing is left; after a power cut at most `<path>.<id>.unfinished`, which a later try removes.
 */
export async function makeNewFile(path: string, make: (draft: string) => Promise<void>): Promise<void> {
  refuseToOverwrite(path);
  await removeLeft(path);
  const draft = `${path}.${crypto.randomUUID()}${UNFINISHED}`;
  await (await open(draft, 'wx', 0o600)).close();
  try {
    await make(draft);
    await sync(draft);
    await putInPlace(draft, path);
    await sync(dirname(path));
  } finally {
    await removeDatabase(draft);
  }
}

async function removeLeft(path: string): Promise<void> {
  const folder = dirname(path);
  for (const name of await readdir(folder).catch(() => [])) {
    if (!name.startsWith(`${basename(path)}.`) || !name.endsWith(UNFINISHED)) continue;
    const draft = join(folder, name);
    const touched = await stat(draft).catch(() => null);
    if (touched !== null && Date.now() - touched.mtimeMs > LEFT_MS) await removeDatabase(draft);
  }
}

/** @throws CliError */
export function refuseToOverwrite(path: string): void {
  if (existsSync(path)) throw alreadyThere(path);
}

/** With the files that SQLite keeps beside it. */
export async function removeDatabase(path: string): Promise<void> {
  for (const file of [path, `${path}-wal`, `${path}-shm`, `${path}-journal`]) await rm(file, { force: true });
}

/** A link, because to rename would write over what has come there meanwhile. Where there are no links, a look must do. */
async function putInPlace(draft: string, path: string): Promise<void> {
  try {
    await link(draft, path);
  } catch (error) {
    if (errorCode(error) === 'EEXIST') throw alreadyThere(path);
    refuseToOverwrite(path);
    await rename(draft, path);
  }
}

function alreadyThere(path: string): CliError {
  return new CliError(EXIT.failed, `${path} is there already, and is not written over; name another file`);
}

async function sync(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } catch (error) {
    // a folder that can't be synced by itself
    if (!/^(EINVAL|EISDIR|EPERM)$/.test(errorCode(error) ?? '')) throw error;
  } finally {
    await file.close();
  }
}
