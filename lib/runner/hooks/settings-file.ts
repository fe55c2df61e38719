import { randomBytes } from 'node:crypto';
import { chmod, mkdir, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { removeStaleDrafts } from '../host/data-folder.mjs';
import { explainSystemError } from '../host/system-error.mjs';
import { type HookEntry, hasHooks, SettingsError, withHooks, withoutHooks } from './hook-entries';

/**
 * Changes a settings file of Claude Code.
 *
 * Failure: the new text replaces the file in one step. `<file>.interlude-backup` keeps the text before the first
 * installation until `uninstallHooks`. A file that is not JSON stays unchanged.
 */
export type SettingsOutcome = 'changed' | 'unchanged';

const BACKUP = '.interlude-backup';
const NEW_FILE = '{}\n';

/** @throws SettingsError with the file's name, if it can't be read or is not valid */
export async function installHooks(settings: string, entryOf: (event: string) => HookEntry): Promise<SettingsOutcome> {
  const file = await real(settings);
  return await named(file, async () => {
    const text = await read(file);
    const next = withHooks(settingsIn(text), entryOf);
    if (next === text) return 'unchanged';
    // An empty backup means that there was no file, so an empty file is backed up as a blank line.
    const backup = text === '' ? '\n' : (text ?? '');
    if (!hasHooks(settingsIn(text))) await write(`${file}${BACKUP}`, backup, file);
    await write(file, next, file);
    return 'changed';
  });
}

/** Reverts `installHooks`; restores the original bytes if nothing else has changed since. */
export async function uninstallHooks(
  settings: string,
  entryOf: (event: string) => HookEntry,
): Promise<SettingsOutcome> {
  const file = await real(settings);
  return await named(file, async () => {
    const text = await read(file);
    if (text === null || !hasHooks(settingsIn(text))) return 'unchanged';
    const backup = await read(`${file}${BACKUP}`);
    const before = backup === null ? null : settingsIn(backup);
    const isAsInstalled = before !== null && isSettings(before) && withHooks(before, entryOf) === text;
    if (isAsInstalled && backup === '') await rm(file);
    else await write(file, isAsInstalled && backup !== null ? backup : withoutHooks(text, usable(before)), file);
    await rm(`${file}${BACKUP}`, { force: true });
    return 'changed';
  });
}

function settingsIn(text: string | null): string {
  return text === null || text.trim() === '' ? NEW_FILE : text;
}

async function named<Result>(file: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SettingsError)
      throw new SettingsError(`${file} ${error.message}; the file is unchanged: fix it, then try again`);
    const trouble = explainSystemError(error as NodeJS.ErrnoException, dirname(file));
    if (trouble !== null) throw new SettingsError(`${file} is unchanged: ${trouble}`);
    const { code } = error as NodeJS.ErrnoException;
    if (code !== undefined)
      throw new SettingsError(`${file} can't be changed (${code}); check the path, then try again`);
    throw error;
  }
}

async function read(file: string): Promise<string | null> {
  try {
    // Strict, so that no invalid byte is replaced when the text is written back.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await readFile(file));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    if (error instanceof TypeError) throw new SettingsError('is not UTF-8');
    throw error;
  }
}

async function write(file: string, text: string, like: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  const mode = await stat(like).then(
    (found) => found.mode & 0o777,
    () => 0o600,
  );
  const partial = `${file}.${process.pid}.${randomBytes(4).toString('hex')}.partial`;
  removeStaleDrafts(file, /^(\d+)\.[0-9a-f]{8}\.partial$/);
  const handle = await open(partial, 'wx', mode);
  try {
    await handle.writeFile(text);
    await handle.sync();
    await handle.close();
    await chmod(partial, mode);
    await rename(partial, file);
  } catch (error) {
    await handle.close().catch(() => undefined);
    await rm(partial, { force: true });
    throw error;
  }
}

/** Follows a link, so that the rename does not replace it. */
async function real(file: string): Promise<string> {
  return await realpath(file).catch(() => file);
}

function isSettings(text: string): boolean {
  try {
    hasHooks(text);
    return true;
  } catch {
    return false;
  }
}

function usable(text: string | null): string | null {
  return text !== null && isSettings(text) ? text : null;
}
