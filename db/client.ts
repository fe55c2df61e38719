import { constants } from 'node:fs';
import { access, mkdir, open, readFile, realpath, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { createClient } from '@libsql/client';
import { AppError } from '@/lib/protocol/errors';
import type { Position } from '@/lib/protocol/position';
import { Damage } from './damage';
import { databaseErrorCode } from './database-error';
import { DatabaseFile, MAX_IDLE_LOG_BYTES } from './database-file';
import { followCounter, listenUrlOf } from './follow-counter';
import { forgetCommits } from './forget-commits';
import { guardedReader } from './guarded-reader';
import { Lease } from './lease';
import { noteFiles, setAsideForeignLog } from './left-behind-log';
import { LocalConnection } from './local-connection';
import { LocalReader } from './local-reader';
import { localWriter } from './local-writer';
import { isWhole, knowsFrames } from './look-through';
import { migrate, type SchemaState, schemaState } from './migrate';
import { firstLine, openError } from './open-error';
import type { BatchServer } from './optimistic-transaction';
import { OptimisticWrites } from './optimistic-writes';
import { ReadQueue } from './read-queue';
import type { Reader } from './reader';
import { retryWhileBusy } from './retry-while-busy';
import { TrialBatches } from './trial-batch';
import { type TransactionSource, WriteQueue } from './write-queue';
import type { Writes } from './writes';

export interface Database {
  /** For reading only. */
  reader: Reader;
  /** For small reads that a caller waits for: on a local file they run on the event loop. */
  tail: Reader;
  /** Where reads of many rows wait for their turn. */
  reads: ReadQueue;
  /** The one way to write. */
  writes: Writes;
  /** Whether the database was found damaged. */
  damage: Damage;
  /** Calls back after each commit of this process that moved the counter. @returns the way to stop. */
  onCommit(listener: (position: Position) => void): () => void;
  /**
   * Calls back after what other processes commit, also when there was nothing: soon on a server, every `pollMs` on a file.
   * @returns the way to stop
   */
  follow(onMove: () => void, pollMs: number): () => void;
  /**
   * Whether a piece of work is for this process to do now, of all that have the database open. Of those on one file, each
   * does what it finds.
   *
   * @returns asks that anew each time
   */
  lease(work: string): () => Promise<boolean>;
  /** Removes what the writing itself leaves behind. */
  tidy(): Promise<void>;
  /**
   * Whether it can be written to. It is tried, by a write that changes no row.
   * @returns what is wrong, as the end of a sentence about it; null when nothing is
   */
  trouble(): Promise<string | null>;
  /** Finishes the waiting writes, moves them from the log into the file itself, and closes it. */
  close(): Promise<void>;
}

export interface DatabaseOptions {
  /** `file:///…` for a database of our own, `libsql://…` or `https://…` for a libSQL server. */
  url: string;
  authToken?: string;
  /** Whether to bring the schema up to date first. By default yes for a file and no for a server. */
  migrates?: boolean;
  /** Whether this process has seen already that the schema is this version's. */
  isKnown?: boolean;
  /** Whether it serves one request, which waits for nobody else's writes. */
  isAlone?: boolean;
}

/** Tells a lock from a fault at once; the write queue does the waiting, without holding up the event loop. */
const LOCK_TIMEOUT_MS = 20;
const OPEN_TIMEOUT_MS = 10_000;

/**
 * Opens a database, checks that it is ours and that its schema is this version's.
 * @throws AppError `unavailable` with one line that says what is wrong and what to do
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const isFile = options.url.startsWith('file:');
  const name = nameOf(options.url);
  let letGo = () => {};
  try {
    const opened = await (isFile ? openFile(name) : openServer(options));
    const { reader, tail, transactions, writesTo, file, path, checkpoint, isWhole, close } = opened;
    letGo = close;
    const damage = new Damage(path ?? name, isWhole);
    if (options.migrates ?? isFile) await migrateUnlessNewer(reader, new WriteQueue(transactions, {}, damage), name);
    const writes = writesTo(damage);
    if (options.isKnown !== true) await requireSchema(reader, name);
    // from here on, this is the file that must stay in place
    if (path !== null) await Promise.all([file?.changed(), noteFiles(path)]);
    return {
      reader: guardedReader(reader, damage),
      tail: guardedReader(tail, damage),
      damage,
      reads: new ReadQueue(isFile ? {} : AT_A_SERVER),
      writes,
      onCommit: (listener) => writes.onCommit(listener),
      follow: opened.follow,
      lease: opened.lease,
      tidy: async () => {
        while (!isFile && (await forgetCommits(reader, writes)) > 0);
      },
      trouble: async () => (await file?.trouble()) ?? (await writeTrouble(writes)),
      close: async () => {
        await writes.close();
        damage.close();
        // nothing more is written to a file that is damaged or was replaced
        if (damage.code === null && (await file?.changed()) === null) await checkpoint();
        // SQLite would copy what is left of the log into the file, and part of a log is worse than none
        if (file?.isPartGone !== true) close();
      },
    };
  } catch (error) {
    letGo();
    throw openError(error, name);
  }
}

interface Opened {
  reader: Reader;
  tail: Reader;
  /** For migrations. */
  transactions: TransactionSource;
  writesTo(damage: Damage): Writes;
  /** Null for a server, which has no file to look at. */
  file: DatabaseFile | null;
  /** The file's path; null for a server. */
  path: string | null;
  follow: Database['follow'];
  lease: Database['lease'];
  /** Copies the log into the file itself. Never rejects. */
  checkpoint(): Promise<void>;
  /** Checks the whole file; null for a server. */
  isWhole: (() => Promise<boolean>) | null;
  close(): void;
}

async function openFile(name: string): Promise<Opened> {
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
  const connection = open();
  const close = () => {
    for (const each of [connection, reader, tail]) each.close();
  };
  try {
    await retryWhileBusy(() => connection.run('PRAGMA journal_mode = WAL', 'thread'), OPEN_TIMEOUT_MS);
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
  const writesTo = (damage: Damage) => new WriteQueue(writer, {}, damage);
  return {
    reader,
    tail,
    transactions: writer,
    writesTo,
    follow: atIntervals,
    lease: () => async () => true,
    file,
    path,
    checkpoint,
    isWhole: () => isWhole(open, opened),
    close,
  };
}

async function openServer({ url, authToken, isAlone = false }: DatabaseOptions): Promise<Opened> {
  const client = createClient({ url, authToken });
  const trials = new TrialBatches(url, authToken);
  const counter = async () => Number((await client.execute('SELECT position FROM counter')).rows[0]?.position ?? 0);
  const server: BatchServer = {
    batch: (statements, mode) => client.batch(statements, mode),
    trial: (statements) => trials.run(statements),
  };
  return {
    reader: client,
    tail: client,
    transactions: client,
    writesTo: (damage) => new OptimisticWrites(server, { hasLines: !isAlone }, damage),
    follow: (onMove) => followCounter({ listenUrl: listenUrlOf(url), authToken, counter }, onMove),
    lease: (work) => {
      const lease = new Lease(server, work);
      return () => lease.isHeld();
    },
    file: null,
    path: null,
    checkpoint: async () => {},
    isWhole: null,
    close: () => {
      client.close();
      trials.close();
    },
  };
}

/** Nothing tells a process of another one's commits to a file. */
function atIntervals(onMove: () => void, pollMs: number): () => void {
  const poll = setInterval(onMove, pollMs);
  if (typeof poll === 'object') poll.unref?.();
  return () => clearInterval(poll);
}

/** Reads from a server do not block this process. */
const AT_A_SERVER = { atOnce: 16 };

/** A write that leaves nothing behind. SQLite would write no page for an UPDATE that changes nothing. */
const NOTHING = ['INSERT INTO counter (id, position) VALUES (0, 0)', 'DELETE FROM counter WHERE id = 0'];

async function writeTrouble(writes: Writes): Promise<string | null> {
  try {
    await writes.run((transaction) => transaction.batch(NOTHING));
    return null;
  } catch (error) {
    return firstLine(error);
  }
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

/** Where the environment says the database is; by default, a file in `.interlude`. */
export function databaseOptions(env: Record<string, string | undefined>): DatabaseOptions {
  const url = env.INTERLUDE_DATABASE_URL;
  if (url)
    return { url: url.startsWith('file:') ? fileUrl(url.slice(5)) : url, authToken: env.INTERLUDE_DATABASE_AUTH_TOKEN };
  return { url: pathToFileURL(resolve(env.INTERLUDE_DATA_DIR || '.interlude', 'interlude.db')).href };
}

/** `file:name.db` and `file:./name.db` are relative to the working directory. */
function fileUrl(path: string): string {
  return path.startsWith('//') ? `file:${path}` : pathToFileURL(resolve(decodeURI(path))).href;
}

/** What to call the database in a message: never the whole address, which may hold a secret. */
function nameOf(url: string): string {
  try {
    return url.startsWith('file:') ? fileURLToPath(url) : new URL(url).host;
  } catch (cause) {
    const message =
      'INTERLUDE_DATABASE_URL isn’t the address of a database. Use file:<path>, libsql://<host> or https://<host>.';
    throw new AppError('unavailable', message, { cause });
  }
}

async function migrateUnlessNewer(reader: Reader, writes: Writes, name: string): Promise<void> {
  if ((await schemaState(reader)) !== 'behind') return;
  const folder = join(process.cwd(), 'db', 'migrations');
  try {
    await migrate(writes, (tag) => readFile(join(folder, `${tag}.sql`), 'utf8'));
  } catch (error) {
    const isTooManyFiles = error instanceof Error && 'code' in error && /^E[MN]FILE$/.test(String(error.code));
    if (databaseErrorCode(error) !== null || isTooManyFiles) throw error;
    throw new AppError('unavailable', `The database ${name} can't be migrated: ${firstLine(error)}`, { cause: error });
  }
}

const SCHEMA_REFUSALS: Record<Exclude<SchemaState, 'current' | 'ahead'>, string> = {
  newer: 'was written by a newer Interlude. Update this one, or point it at another database.',
  foreign:
    'was written by an earlier Interlude, whose tables this one can’t take over. Move it away to begin anew, or point this one at another database.',
  behind: "lacks this version's tables. Run: npm run db:migrate",
};

async function requireSchema(reader: Reader, name: string): Promise<void> {
  const state = await schemaState(reader);
  if (state === 'current' || state === 'ahead') return;
  throw new AppError('unavailable', `The database ${name} ${SCHEMA_REFUSALS[state]}`);
}
