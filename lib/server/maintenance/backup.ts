import { existsSync } from 'node:fs';
import { link, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { CliError, EXIT, type ExitCode } from '@interlude/runner/cli/exit';
import { print } from '@interlude/runner/cli/table';
import { errorCode } from '@interlude/runner/system-error.mjs';
import { LocalConnection } from '@/db/local-connection';
import { copyDatabase } from './copy-database';
import { type DatabaseLocation, LOCK_TIMEOUT_MS, locationName, openFile } from './database-location';
import { formatBytes, formatDuration, Progress } from './progress';

const LOOK_MS = 200;

/**
 * A copy of the database, of one moment, in a file of its own. Who writes goes on.
 *
 * Of a file it is SQLite's own `VACUUM INTO`. Of a server it is read through one read transaction, page by page, into
 * tables that our migrations make: that works at every libSQL server, where `GET /dump` is sqld's alone and answers SQL,
 * which only a shell that may write the schema can load (the search tables are in it as bare rows).
 */
export async function backup(place: DatabaseLocation, file: string): Promise<ExitCode> {
  const begunAt = performance.now();
  await makeNewFile(file, (draft) => (place.kind === 'file' ? copyFile(place, draft) : copyServer(place, draft)));
  const { size } = await stat(file);
  print(
    `${file}: ${formatBytes(size)} in ${formatDuration(performance.now() - begunAt)}, a copy of ${locationName(place)}`,
  );
  return EXIT.done;
}

async function copyFile(place: DatabaseLocation & { kind: 'file' }, draft: string): Promise<void> {
  const connection = await openFile(place);
  const progress = new Progress();
  const look = setInterval(async () => {
    const done = await stat(draft).catch(() => null);
    if (done !== null) progress.report(() => `${formatBytes(done.size)} of at most ${formatBytes(atMost)}`);
  }, LOOK_MS);
  let atMost = 0;
  try {
    const pages = await connection.execute(
      'SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size',
      'loop',
    );
    atMost = Number(pages.rows[0]?.bytes ?? 0);
    await connection.execute({ sql: 'VACUUM INTO ?', args: [draft] }, 'thread');
  } finally {
    clearInterval(look);
    progress.clear();
    connection.close();
  }
  await beginLog(draft);
}

/** Its header says that there is a log, as in the original: else the first start would have to lock it to say so. */
async function beginLog(draft: string): Promise<void> {
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
/** A draft that nobody has written to for so long is nobody's. */
const LEFT_MS = 60 * 60_000;

/**
 * Makes a file that only its owner can read, beside its place, and puts it there when it is whole and on the disk.
 *
 * Failure: nothing that is there is written over, and of several that make the same file at once, one does. If `make`
 * fails, nothing is left; after a power cut at most `<path>.<id>.unfinished`, which a later try removes.
 */
async function makeNewFile(path: string, make: (draft: string) => Promise<void>): Promise<void> {
  requireAbsent(path);
  await removeStaleDrafts(path);
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

async function removeStaleDrafts(path: string): Promise<void> {
  const folder = dirname(path);
  for (const name of await readdir(folder).catch(() => [])) {
    if (!name.startsWith(`${basename(path)}.`) || !name.endsWith(UNFINISHED)) continue;
    const draft = join(folder, name);
    const touched = await stat(draft).catch(() => null);
    if (touched !== null && Date.now() - touched.mtimeMs > LEFT_MS) await removeDatabase(draft);
  }
}

/** @throws CliError */
function requireAbsent(path: string): void {
  if (existsSync(path)) throw fileExists(path);
}

/** With the files that SQLite keeps beside it. */
async function removeDatabase(path: string): Promise<void> {
  for (const file of [path, `${path}-wal`, `${path}-shm`, `${path}-journal`]) await rm(file, { force: true });
}

/** A link, because to rename would write over what has come there meanwhile. Where there are no links, a look must do. */
async function putInPlace(draft: string, path: string): Promise<void> {
  try {
    await link(draft, path);
  } catch (error) {
    if (errorCode(error) === 'EEXIST') throw fileExists(path);
    requireAbsent(path);
    await rename(draft, path);
  }
}

function fileExists(path: string): CliError {
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
