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
import { Yielder } from './yield-to-loop';

/**
 * Databases that are files of this machine. Where there are none, `no-file.ts` stands in its place: see `imports` in
 * package.json.
 */

/** Tells a lock from a fault at once; the write queue does the waiting, without holding up the event loop. */
const LOCK_TIMEOUT_MS = 20;
const OPEN_TIMEOUT_MS = 10_000;

export async function openFile(name: string): Promise<Driver> {
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
    isWhole: () => isIntact(open, opened),
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

/** Copies the log into the file, as far as no reader prevents it. */
const CHECKPOINT = 'PRAGMA wal_checkpoint(PASSIVE)';

/** How long the statements of one transaction may take on the event loop; the others run on a thread. */
const MAX_LOOP_MS = 10;

/**
 * Write transactions on a database file, over the one connection that writes. Most take a few milliseconds on the event
 * loop, and a thread would only add to that. A longer one continues on a thread, and so does every commit, which waits
 * for the disk: nobody else waits for either.
 *
 * Failure: a file that was deleted or replaced, or whose log was cut short, accepts every write and loses all of them
 * with the process, so no transaction is begun then.
 */
export function localWriter(
  connection: LocalConnection,
  file: Pick<DatabaseFile, 'changed' | 'committed' | 'lacksOnlyItsLog'>,
): TransactionSource {
  return {
    transaction: async () => {
      let place: Place = 'loop';
      if ((await file.changed()) !== null) {
        // The log was deleted but is still open: what was acknowledged is copied from it into the file.
        if (file.lacksOnlyItsLog()) await connection.run(CHECKPOINT, 'thread').catch(() => undefined);
        throw changedByOthers();
      }
      await connection.run('BEGIN IMMEDIATE', 'loop');
      const yielder = new Yielder();
      let onLoopMs = 0;
      const execute: WriteTransaction['execute'] = async (statement) => {
        const begunAt = performance.now();
        const answer = await connection.execute(statement, isSavepoint(statement) ? 'loop' : place);
        // a thread's answer comes in a turn of its own
        if (place === 'loop') {
          onLoopMs += performance.now() - begunAt;
          await yielder.rest();
        }
        if (onLoopMs >= MAX_LOOP_MS) place = 'thread';
        return answer;
      };
      return {
        execute,
        batch: (statements) => runInOrder(statements, execute),
        commit: async () => {
          await connection.run('COMMIT', 'thread');
          file.committed();
        },
        close: async () => {
          // even if it reports an error, the transaction is over
          if (connection.isInTransaction) await connection.run('ROLLBACK', 'thread').catch(() => undefined);
        },
      };
    },
  };
}

/** Set and released in microseconds, whatever stands between. */
function isSavepoint(statement: InStatement): boolean {
  return typeof statement === 'string' && /^(SAVEPOINT|RELEASE) /.test(statement);
}

/** The path is the operator's affair: the server's own log names it, when /readyz is asked. */
function changedByOthers(): AppError {
  const message =
    "A file of the database was deleted, replaced or cut short while it was open, or can't be looked at, and nothing was stored. Put it back, or stop Interlude and start it again. Then send this again.";
  return new AppError('unavailable', message, { headers: { 'retry-after': '5' } });
}

/**
 * Whether all of a database file can be read and is consistent, checked over a new connection. Opening an emptied file
 * would delete its log and find nothing wrong with the rest, so a file that others have changed is not opened.
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

/**
 * For an empty log: whether SQLite thinks that there is something in it. If so, somebody else emptied it; if not,
 * SQLite did.
 */
async function hasLogFrames(reader: Reader): Promise<boolean> {
  try {
    const { rows } = await reader.execute('PRAGMA wal_checkpoint(PASSIVE)');
    return Number(rows[0]?.log) > 0;
  } catch (error) {
    // any other failure shows at the next check
    return error instanceof LibsqlError && error.extendedCode === 'SQLITE_IOERR_SHORT_READ';
  }
}
