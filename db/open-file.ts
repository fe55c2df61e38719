import { constants } from 'node:fs';
import { access, mkdir, open, readFile, realpath, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { AppError } from '@interlude/protocol/errors';
import { type InStatement, LibsqlError } from '@libsql/client';
import type { Damage } from './damage';
import { retryWhileBusy } from './database-error';
import { DatabaseFile, MAX_IDLE_LOG_BYTES, noteFiles, setAsideForeignLog } from './database-file';
import type { Driver } from './driver';
import { NO_LEASE } from './lease';
import { LocalConnection, type Place } from './local-connection';
import { LocalReader } from './local-reader';
import { NEWEST_MIGRATION } from './migrate';
import { type Reader, runInOrder } from './reader';
import { type TransactionSource, WriteQueue } from './write-queue';
import type { WriteTransaction } from './writes';
import { unref, Yielder } from './yield-to-loop';

/** Databases in local files. On platforms without a file system, `no-file.ts` replaces this: see `imports` in package.json. */

/** Short, so a lock is reported immediately: the write queue waits for it without blocking the event loop. */
const LOCK_TIMEOUT_MS = 20;
const OPEN_TIMEOUT_MS = 10_000;

export async function openFile(name: string): Promise<Driver> {
  await mkdir(dirname(name), { recursive: true, mode: 0o700 });
  // SQLite keeps the log of a linked file beside the link's target. A missing path is not a link.
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
  // Only the queue uses this connection, so its settings apply to every write.
  let connection = open();
  const close = () => {
    for (const each of [connection, reader, tail]) each.close();
  };
  try {
    await retryWhileBusy(async () => {
      // A statement that met a lock keeps its snapshot, and no later write can succeed in that snapshot.
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
    () => hasLogFrames(reader),
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
    isIntact: () => isIntact(open, opened),
    settle: async () => {
      await Promise.all([opened.changed(), noteFiles(path)]);
    },
    close,
  };
}

/** SQLite doesn't notify processes of each other's commits. */
function atIntervals(onMove: () => void, pollMs: number): () => void {
  const poll = setInterval(onMove, pollMs);
  unref(poll);
  return () => clearInterval(poll);
}

/**
 * Creates the file, readable by its owner only, as SQLite does for the files beside it. An existing file is not opened:
 * closing it would drop all of SQLite's locks on it in this process.
 *
 * @see https://sqlite.org/howtocorrupt.html 2.2
 */
async function touch(path: string): Promise<void> {
  try {
    await (await open(path, 'wx', 0o600)).close();
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    if ((await stat(path)).isDirectory()) throw Object.assign(new Error('the path is a folder'), { code: 'EISDIR' });
    await access(path, constants.W_OK);
  }
}

export function defaultUrl(dataDir: string | undefined): string {
  return pathToFileURL(resolve(dataDir || '.interlude', 'interlude.db')).href;
}

/** `file:name.db` and `file:./name.db` are relative to the working directory. */
export function fileUrl(path: string): string {
  return path.startsWith('//') ? `file:${path}` : pathToFileURL(resolve(decodeURI(path))).href;
}

/** @throws TypeError for an invalid file URL */
export function pathOf(url: string): string {
  return fileURLToPath(url);
}

export function readMigration(tag: string): Promise<string> {
  return readFile(join(process.cwd(), 'db', 'migrations', `${tag}.sql`), 'utf8');
}

/** Only for a new file: on an existing one this would wait for its writers, and change nothing. */
async function setUp(connection: LocalConnection): Promise<void> {
  const { rows } = await connection.execute('PRAGMA page_count', 'loop');
  // Lets retention return free pages to the disk in small steps.
  if (rows[0]?.page_count === 0) await connection.run('PRAGMA auto_vacuum = INCREMENTAL', 'thread');
  await connection.run('PRAGMA journal_mode = WAL', 'thread');
}

/** Checkpoints the log into the file, as far as readers allow. */
const CHECKPOINT = 'PRAGMA wal_checkpoint(PASSIVE)';

/** Milliseconds that a transaction's statements may run on the event loop. The rest run on a thread. */
const MAX_LOOP_MS = 10;

/**
 * Write transactions on the only writing connection. Most take a few milliseconds on the event loop, where a thread
 * would only add overhead. Longer transactions continue on a thread. Every commit runs on one, because it waits for the
 * disk.
 *
 * Failure: a deleted or replaced file, or one with a truncated log, accepts writes, which are lost when the
 * process ends. So no transaction starts in that state.
 */
export function localWriter(
  connection: LocalConnection,
  file: Pick<DatabaseFile, 'changed' | 'committed' | 'lacksOnlyItsLog'>,
): TransactionSource {
  return {
    transaction: async () => {
      let place: Place = 'loop';
      if ((await file.changed()) !== null) {
        // The deleted log is still open: copies acknowledged commits from it into the file.
        if (file.lacksOnlyItsLog()) await connection.run(CHECKPOINT, 'thread').catch(() => undefined);
        throw changedByOthers();
      }
      await connection.run('BEGIN IMMEDIATE', 'loop');
      const yielder = new Yielder();
      let onLoopMs = 0;
      const execute: WriteTransaction['execute'] = async (statement) => {
        const startedAt = performance.now();
        const result = await connection.execute(statement, isSavepoint(statement) ? 'loop' : place);
        // A thread's result arrives in a new turn of the event loop.
        if (place === 'loop') {
          onLoopMs += performance.now() - startedAt;
          await yielder.yieldIfDue();
        }
        if (onLoopMs >= MAX_LOOP_MS) place = 'thread';
        return result;
      };
      return {
        execute,
        batch: (statements) => runInOrder(statements, execute),
        commit: async () => {
          await connection.run('COMMIT', 'thread');
          file.committed();
        },
        close: async () => {
          // The transaction has ended even if the rollback fails.
          if (connection.isInTransaction) await connection.run('ROLLBACK', 'thread').catch(() => undefined);
        },
      };
    },
  };
}

/** These take microseconds, regardless of the transaction's size. */
function isSavepoint(statement: InStatement): boolean {
  return typeof statement === 'string' && /^(SAVEPOINT|RELEASE) /.test(statement);
}

/** Does not name the path to API clients. The server logs the path when /readyz is called. */
function changedByOthers(): AppError {
  const message =
    "A file of the database was deleted, replaced or truncated while it was open, or can't be checked, and nothing was stored. Put it back, or restart Interlude. Then send this again.";
  return new AppError('unavailable', message, { headers: { 'retry-after': '5' } });
}

/**
 * Checks on a new connection that the whole file is readable and consistent. Opening an emptied file would delete its
 * log and find no error in the rest, so a file that another program has changed is not opened.
 */
export async function isIntact(open: () => LocalConnection, file: Pick<DatabaseFile, 'changed'>): Promise<boolean> {
  if ((await file.changed()) !== null) return false;
  const connection = open();
  try {
    const { rows } = await connection.execute('PRAGMA quick_check(1)', 'thread');
    return rows[0]?.quick_check === 'ok';
  } finally {
    connection.close();
  }
}

/** The log is empty, but SQLite believes that it has content, so another program emptied it. */
async function hasLogFrames(reader: Reader): Promise<boolean> {
  try {
    const { rows } = await reader.execute('PRAGMA wal_checkpoint(PASSIVE)');
    return Number(rows[0]?.log) > 0;
  } catch (error) {
    // The next check reports any other failure.
    return error instanceof LibsqlError && error.extendedCode === 'SQLITE_IOERR_SHORT_READ';
  }
}
