import { constants } from 'node:fs';
import { access, mkdir, open, readFile, realpath, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Damage } from './damage';
import { DatabaseFile, MAX_IDLE_LOG_BYTES } from './database-file';
import { NO_LEASE } from './lease';
import { noteFiles, setAsideForeignLog } from './left-behind-log';
import { LocalConnection } from './local-connection';
import { LocalReader } from './local-reader';
import { localWriter } from './local-writer';
import { isWhole, knowsFrames } from './look-through';
import { NEWEST_MIGRATION } from './migrate';
import type { Opened } from './opened';
import { retryWhileBusy } from './retry-while-busy';
import { WriteQueue } from './write-queue';

/**
 * Databases that are files of this machine. Where there are none, `no-file.ts` stands in its place: see `imports` in
 * package.json.
 */

/** Tells a lock from a fault at once; the write queue does the waiting, without holding up the event loop. */
const LOCK_TIMEOUT_MS = 20;
const OPEN_TIMEOUT_MS = 10_000;

export async function openFile(name: string): Promise<Opened> {
  await makeFolder(dirname(name));
  // for a link, SQLite keeps the log beside its target; a path that does not exist yet is no link
  const path = await realpath(name).catch(() => name);
  await setAsideForeignLog(path);
  await touch(path);
  await noteFiles(path);
  let file: DatabaseFile | null = null;
  const open = () => {
    file?.requireContent();
    return new LocalConnection(path, LOCK_TIMEOUT_MS);
  };
  const reader = new LocalReader(open, 'thread');
  const tail = new LocalReader(open, 'loop');
  // One connection that only the queue uses, so that its settings hold for every write.
  let connection = open();
  const close = () => {
    for (const each of [connection, reader, tail]) each.close();
  };
  try {
    await retryWhileBusy(async () => {
      // A statement that met a lock keeps its view of the file, in which nothing can be written later.
      if (!connection.isSound) {
        connection.close();
        connection = open();
      }
      await setUp(connection);
    }, OPEN_TIMEOUT_MS);
    await connection.run(`PRAGMA synchronous = FULL; PRAGMA journal_size_limit = ${MAX_IDLE_LOG_BYTES}`, 'loop');
  } catch (error) {
    close();
    throw error;
  }
  const opened = new DatabaseFile(
    path,
    () => knowsFrames(reader),
    () => noteFiles(path, true),
    name,
  );
  file = opened;
  const checkpoint = () => connection.run('PRAGMA wal_checkpoint(TRUNCATE)', 'thread').catch(() => undefined);
  const writer = localWriter(connection, opened);
  const writesTo = (damage: Damage) => new WriteQueue(writer, { version: NEWEST_MIGRATION }, damage);
  return {
    reader,
    tail,
    transactions: writer,
    writesTo,
    follow: atIntervals,
    lease: () => NO_LEASE,
    file,
    path,
    checkpoint,
    isWhole: () => isWhole(open, opened),
    settle: async () => {
      await Promise.all([opened.changed(), noteFiles(path)]);
    },
    close,
  };
}

/** Nothing tells a process of another one's commits to a file. */
function atIntervals(onMove: () => void, pollMs: number): () => void {
  const poll = setInterval(onMove, pollMs);
  if (typeof poll === 'object') poll.unref?.();
  return () => clearInterval(poll);
}

async function makeFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
}

/**
 * Creates the file, readable by its owner only, as are the ones SQLite puts beside it. A file that exists is not
 * opened: closing it again would drop every lock that SQLite holds on it in this process, and the next program would
 * think itself alone.
 *
 * @see https://sqlite.org/howtocorrupt.html 2.2
 */
async function touch(path: string): Promise<void> {
  try {
    await (await open(path, 'wx', 0o600)).close();
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    if ((await stat(path)).isDirectory()) throw Object.assign(new Error('a folder stands there'), { code: 'EISDIR' });
    await access(path, constants.W_OK);
  }
}

/** By default, a file in `.interlude`. */
export function defaultUrl(dataDir: string | undefined): string {
  return pathToFileURL(resolve(dataDir || '.interlude', 'interlude.db')).href;
}

/** `file:name.db` and `file:./name.db` are relative to the working directory. */
export function fileUrl(path: string): string {
  return path.startsWith('//') ? `file:${path}` : pathToFileURL(resolve(decodeURI(path))).href;
}

/** @throws TypeError for an address of no file */
export function pathOf(url: string): string {
  return fileURLToPath(url);
}

/** The SQL of one migration. */
export function readMigration(tag: string): Promise<string> {
  return readFile(join(process.cwd(), 'db', 'migrations', `${tag}.sql`), 'utf8');
}

/** Only a file that is made now: for any other this would wait for whoever writes to it, and change nothing. */
async function setUp(connection: LocalConnection): Promise<void> {
  const { rows } = await connection.execute('PRAGMA page_count', 'loop');
  // what is removed from it can be given back in small pieces
  if (rows[0]?.page_count === 0) await connection.run('PRAGMA auto_vacuum = INCREMENTAL', 'thread');
  await connection.run('PRAGMA journal_mode = WAL', 'thread');
}
