import { randomBytes } from 'node:crypto';
import { chmod, mkdir, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { removeLeftDrafts } from '../host/data-folder.mjs';
import { systemTrouble } from '../host/system-error.mjs';
import { type HookEntry, hasHooks, SettingsError, withHooks, withoutHooks } from './hook-entries';

/**
 * A settings file of Claude Code, changed in place.
 *
 * Failure: the new text is written whole beside it and takes its place in one step; what was there before the first
 * installation is kept as `<file>.interlude-backup` until it is uninstalled. A file that is not JSON is left alone.
 */
export type SettingsOutcome = 'changed' | 'unchanged';

const BACKUP = '.interlude-backup';
const NEW_FILE = '{}\n';

/** @throws SettingsError with the file's name, when it can't be read or is not what it should be */
export async function installHooks(settings: string, entryOf: (event: string) => HookEntry): Promise<SettingsOutcome> {
  const file = await real(settings);
  return await named(file, async () => {
    const text = await read(file);
    const next = withHooks(settingsIn(text), entryOf);
    if (next === text) return 'unchanged';
    // An empty backup says that there was no file, so a file that was empty gets a blank line there.
    const backup = text === '' ? '\n' : (text ?? '');
    if (!hasHooks(settingsIn(text))) await write(`${file}${BACKUP}`, backup, file);
    await write(file, next, file);
    return 'changed';
  });
}

/** Takes out what `installHooks` put in; when nothing else has changed since, the file is again what it was. */
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

/** A file that holds nothing, or is none, says as much as one without a setting. */
function settingsIn(text: string | null): string {
  return text === null || text.trim() === '' ? NEW_FILE : text;
}

async function named<Result>(file: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SettingsError) throw new SettingsError(`${file} ${error.message}; it was left as it is`);
    const trouble = systemTrouble(error as NodeJS.ErrnoException, dirname(file));
    if (trouble !== null) throw new SettingsError(`${file} was left as it is: ${trouble}`);
    const { code } = error as NodeJS.ErrnoException;
    if (code !== undefined) throw new SettingsError(`${file} can't be changed (${code}); it was left as it is`);
    throw error;
  }
}

async function read(file: string): Promise<string | null> {
  try {
    // As it stands, or an odd byte somewhere would be written back as another.
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
  removeLeftDrafts(file, /^(\d+)\.[0-9a-f]{8}\.partial$/);
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

/** A link is followed, so that it stays one. */
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
