import { existsSync } from 'node:fs';
import { link, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { CliError, EXIT, type ExitCode, print } from '@interlude/runner/cli/command';
import { errorCode } from '@interlude/runner/host/system-error.mjs';
import { LocalConnection } from '@/db/local-connection';
import { copyDatabase } from './copy-database';
import { type DatabaseLocation, LOCK_TIMEOUT_MS, locationName, openFile } from './database-location';
import { formatBytes, formatDuration, Progress } from './progress';

const POLL_MS = 200;

/**
 * Copies the database at one moment into a new file, while writers continue.
 *
 * A file is copied with `VACUUM INTO`. A server is read page by page in one read transaction, into tables from our
 * migrations. That works with every libSQL server; `GET /dump` exists only in sqld and returns SQL that needs
 * schema-write access to load (search tables are dumped as bare rows).
 */
export async function backup(place: DatabaseLocation, file: string): Promise<ExitCode> {
  const startedAt = performance.now();
  await makeNewFile(file, (draft) => (place.kind === 'file' ? copyFile(place, draft) : copyServer(place, draft)));
  const { size } = await stat(file);
  print(
    `${file}: ${formatBytes(size)} in ${formatDuration(performance.now() - startedAt)}, a copy of ${locationName(place)}`,
  );
  return EXIT.done;
}

async function copyFile(place: DatabaseLocation & { kind: 'file' }, draft: string): Promise<void> {
  const connection = await openFile(place);
  const progress = new Progress();
  const poll = setInterval(async () => {
    const done = await stat(draft).catch(() => null);
    if (done !== null) progress.report(() => `${formatBytes(done.size)} of at most ${formatBytes(atMost)}`);
  }, POLL_MS);
  let atMost = 0;
  try {
    const pages = await connection.execute(
      'SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size',
      'loop',
    );
    atMost = Number(pages.rows[0]?.bytes ?? 0);
    await connection.execute({ sql: 'VACUUM INTO ?', args: [draft] }, 'thread');
  } finally {
    clearInterval(poll);
    progress.clear();
    connection.close();
  }
  await enableWal(draft);
}

/** Enables WAL in the copy's header, so the first start needs no exclusive lock for that. */
async function enableWal(draft: string): Promise<void> {
  const copy = new LocalConnection(draft, LOCK_TIMEOUT_MS);
  try {
    await copy.run('PRAGMA journal_mode = WAL', 'thread');
  } finally {
    copy.close();
  }
}

async function copyServer(place: DatabaseLocation, draft: string): Promise<void> {
  await copyDatabase(place, { kind: 'file', path: draft }, { isOurDraft: true });
}

const UNFINISHED = '.unfinished';
/** Minimum age at which a draft counts as abandoned and is deleted. */
const STALE_MS = 60 * 60_000;

/**
 * Creates a private file next to its destination and moves it there once it is complete and synced.
 *
 * Failure: never overwrites; of several concurrent calls for one path, one succeeds. If `make` fails, nothing remains;
 * after a power failure at most `<path>.<id>.unfinished`, which a later call deletes.
 */
async function makeNewFile(path: string, make: (draft: string) => Promise<void>): Promise<void> {
  requireAbsent(path);
  await removeStaleDrafts(path);
  const draft = `${path}.${crypto.randomUUID()}${UNFINISHED}`;
  await (await open(draft, 'wx', 0o600)).close();
  try {
    await make(draft);
    await sync(draft);
    await moveIntoPlace(draft, path);
    await sync(dirname(path));
  } finally {
    await removeDatabase(draft);
  }
}

async function removeStaleDrafts(path: string): Promise<void> {
  const folder = dirname(path);
  for (const name of await readdir(folder).catch(() => [])) {
    if (!name.startsWith(`${basename(path)}.`) || !name.endsWith(UNFINISHED)) continue;
    const draft = join(folder, name);
    const touched = await stat(draft).catch(() => null);
    if (touched !== null && Date.now() - touched.mtimeMs > STALE_MS) await removeDatabase(draft);
  }
}

function requireAbsent(path: string): void {
  if (existsSync(path)) throw existsAlready(path);
}

/** Also deletes SQLite's companion files. */
async function removeDatabase(path: string): Promise<void> {
  for (const file of [path, `${path}-wal`, `${path}-shm`, `${path}-journal`]) await rm(file, { force: true });
}

/**
 * Links instead of renaming, which would overwrite a file created meanwhile. Without hard links, falls back to an
 * existence check.
 */
async function moveIntoPlace(draft: string, path: string): Promise<void> {
  try {
    await link(draft, path);
  } catch (error) {
    if (errorCode(error) === 'EEXIST') throw existsAlready(path);
    requireAbsent(path);
    await rename(draft, path);
  }
}

function existsAlready(path: string): CliError {
  return new CliError(EXIT.failed, `${path} already exists; name another file`);
}

async function sync(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } catch (error) {
    // ignored: some file systems can't sync a folder
    if (!/^(EINVAL|EISDIR|EPERM)$/.test(errorCode(error) ?? '')) throw error;
  } finally {
    await file.close();
  }
}
