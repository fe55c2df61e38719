import { AppError } from '@interlude/protocol/errors';
import type { Position } from '@interlude/protocol/position';
import { defaultUrl, fileUrl, openFile, pathOf, readMigration } from '#open-file';
import { Damage, guardedReader } from './damage';
import { databaseErrorCode, firstLine, openError } from './database-error';
import type { DatabaseOptions, Driver } from './driver';
import { migrate, type SchemaState, schemaState } from './migrate';
import { openServer } from './open-server';
import { pruneCommits } from './optimistic-transaction';
import { type Reader, ReadQueue } from './reader';
import { WriteQueue } from './write-queue';
import type { Writes } from './writes';

export interface Database extends Pick<Driver, 'reader' | 'tail' | 'follow' | 'lease'> {
  /** Queues reads of many rows. */
  reads: ReadQueue;
  /** The only way to write. */
  writes: Writes;
  damage: Damage;
  /** Calls back after each commit of this process that moved the counter. @returns a function that unsubscribes */
  onCommit(listener: (position: Position) => void): () => void;
  /** Removes bookkeeping of old commits. */
  prune(): Promise<void>;
  /**
   * Tries to write, without changing a row.
   * @returns the failure as a clause, such as “its disk is full”; null on success
   */
  trouble(): Promise<string | null>;
  /** Finishes queued writes, checkpoints the write-ahead log into the file, and closes the file. */
  close(): Promise<void>;
}

/**
 * Opens a database and checks its schema.
 * @throws AppError `unavailable` with the problem and its fix in one line
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const isFile = options.url.startsWith('file:');
  const name = nameOf(options.url);
  let release = () => {};
  try {
    const opened = await (isFile ? openFile(name) : openServer(options));
    const { reader, tail, transactions, writesTo, file, path, checkpoint, isIntact, close } = opened;
    release = close;
    const damage = new Damage(path ?? name, isIntact);
    if (options.migrates ?? isFile) await migrateUnlessNewer(reader, new WriteQueue(transactions, {}, damage), name);
    const writes = writesTo(damage);
    if (options.isKnown !== true) await requireSchema(reader, name);
    await opened.settle();
    return {
      reader: guardedReader(reader, damage),
      tail: guardedReader(tail, damage),
      damage,
      reads: new ReadQueue(isFile ? {} : SERVER_READS),
      writes,
      onCommit: (listener) => writes.onCommit(listener),
      follow: opened.follow,
      lease: opened.lease,
      prune: async () => {
        while (!isFile && (await pruneCommits(reader, writes)));
      },
      trouble: async () => (await file?.trouble()) ?? (await writeTrouble(writes)),
      close: async () => {
        await writes.close();
        damage.close();
        // Leaves a damaged or replaced file alone.
        if (damage.code === null && (await file?.changed()) === null) await checkpoint();
        // On close, SQLite would copy a truncated log into the file, which is worse than losing it.
        if (file?.isPartGone !== true) close();
      },
    };
  } catch (error) {
    release();
    throw openError(error, name);
  }
}

/** Reads from a server don't block this process. */
const SERVER_READS = { concurrency: 16 };

/** Writes and rolls back. An UPDATE that changes nothing would not write a page. */
const PROBE = ['INSERT INTO counter (id, position) VALUES (0, 0)', 'DELETE FROM counter WHERE id = 0'];

async function writeTrouble(writes: Writes): Promise<string | null> {
  try {
    await writes.run((transaction) => transaction.batch(PROBE));
    return null;
  } catch (error) {
    return firstLine(error);
  }
}

/** Reads the environment; by default, a file in `.interlude`. */
export function databaseOptions(env: Record<string, string | undefined>): DatabaseOptions {
  const url = env.INTERLUDE_DATABASE_URL;
  if (url)
    return { url: url.startsWith('file:') ? fileUrl(url.slice(5)) : url, authToken: env.INTERLUDE_DATABASE_AUTH_TOKEN };
  return { url: defaultUrl(env.INTERLUDE_DATA_DIR) };
}

/** Names the database in messages. The whole address may hold a secret. */
function nameOf(url: string): string {
  try {
    return url.startsWith('file:') ? pathOf(url) : new URL(url).host;
  } catch (cause) {
    const message =
      'INTERLUDE_DATABASE_URL isn’t the address of a database. Use file:<path>, libsql://<host> or https://<host>.';
    throw new AppError('unavailable', message, { cause });
  }
}

async function migrateUnlessNewer(reader: Reader, writes: Writes, name: string): Promise<void> {
  if ((await schemaState(reader)) !== 'behind') return;
  try {
    await migrate(writes, readMigration);
  } catch (error) {
    const isTooManyFiles = error instanceof Error && 'code' in error && /^E[MN]FILE$/.test(String(error.code));
    if (databaseErrorCode(error) !== null || isTooManyFiles) throw error;
    throw new AppError('unavailable', `The database ${name} can't be migrated: ${firstLine(error)}`, { cause: error });
  }
}

const SCHEMA_REFUSALS: Record<Exclude<SchemaState, 'current' | 'ahead'>, string> = {
  newer: 'was written by a newer Interlude. Update this one, or use another database.',
  foreign:
    'was written by an earlier Interlude whose tables this one can’t migrate. Move it away to start with an empty one, or use another database.',
  unfinished: 'holds an incomplete copy. Run “interlude db copy” again, or use another database.',
  behind: "lacks this version's tables. Run: npm run db:migrate",
};

async function requireSchema(reader: Reader, name: string): Promise<void> {
  const state = await schemaState(reader);
  if (state === 'current' || state === 'ahead') return;
  const message = `The database ${name} ${SCHEMA_REFUSALS[state]}`;
  // Another process may still migrate the database, or complete the copy.
  throw new AppError('unavailable', message, { headers: { 'retry-after': '5' } });
}

/**
 * The lifetime of the process, chosen once at the start.
 *
 * `shared`: the process lives until it is stopped. Requests share connections, and timers do background work.
 * `perRequest`: the process may freeze after any response and never wake up. Each request has its own connection, does
 * due background work before it reads, and leaves nothing running.
 */
export type ContextKind = 'shared' | 'perRequest';

const KINDS: Record<string, ContextKind> = { shared: 'shared', 'per-request': 'perRequest' };

/** Reads INTERLUDE_CONTEXT; by default, the platform decides. */
export function contextKind(env: Record<string, string | undefined>): ContextKind {
  const named = env.INTERLUDE_CONTEXT;
  if (named) return KINDS[named] ?? 'shared';
  return env.VERCEL === '1' ? 'perRequest' : 'shared';
}

/** @throws AppError `unavailable` for an unknown kind, or for a database file on a host without persistent files */
export function checkContext(env: Record<string, string | undefined>, kind: ContextKind): void {
  const named = env.INTERLUDE_CONTEXT;
  if (named && KINDS[named] === undefined) {
    throw new AppError('unavailable', `INTERLUDE_CONTEXT is ${JSON.stringify(named)}. Use shared or per-request.`);
  }
  if (kind === 'shared' || /^(libsql|https?|wss?):/.test(env.INTERLUDE_DATABASE_URL ?? '')) return;
  throw new AppError(
    'unavailable',
    'Files do not survive a request on this platform. Set INTERLUDE_DATABASE_URL to a libSQL server, for example libsql://<host>.',
  );
}
