import { AppError } from '@interlude/protocol/errors';
import type { Position } from '@interlude/protocol/position';
import { defaultUrl, fileUrl, openFile, pathOf, readMigration } from '#open-file';
import { Damage, guardedReader } from './damage';
import { databaseErrorCode, firstLine, openError } from './database-error';
import type { Lease } from './lease';
import { migrate, type SchemaState, schemaState } from './migrate';
import { openServer } from './open-server';
import { pruneCommits } from './optimistic-transaction';
import { type Reader, ReadQueue } from './reader';
import { WriteQueue } from './write-queue';
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
   * Calls back after what other processes commit, also when there was nothing: soon on a server, every `pollMs` on a file. On
   * a server it is called once after it has begun, and however many follow, the server is asked once for all of them, and
   * nothing while nobody does.
   *
   * @returns the way to stop
   */
  follow(onMove: () => void, pollMs: number): () => void;
  /** @returns one of its own for each who asks */
  lease(work: string): Lease;
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
    await opened.settle();
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
        while (!isFile && (await pruneCommits(reader, writes)));
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

/** Where the environment says the database is; by default, a file in `.interlude`. */
export function databaseOptions(env: Record<string, string | undefined>): DatabaseOptions {
  const url = env.INTERLUDE_DATABASE_URL;
  if (url)
    return { url: url.startsWith('file:') ? fileUrl(url.slice(5)) : url, authToken: env.INTERLUDE_DATABASE_AUTH_TOKEN };
  return { url: defaultUrl(env.INTERLUDE_DATA_DIR) };
}

/** What to call the database in a message: never the whole address, which may hold a secret. */
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
  newer: 'was written by a newer Interlude. Update this one, or point it at another database.',
  foreign:
    'was written by an earlier Interlude, whose tables this one can’t take over. Move it away to begin anew, or point this one at another database.',
  unfinished:
    'holds a copy that was cut off. Copy to it again (“interlude db copy” begins anew), or point this one at another database.',
  behind: "lacks this version's tables. Run: npm run db:migrate",
};

async function requireSchema(reader: Reader, name: string): Promise<void> {
  const state = await schemaState(reader);
  if (state === 'current' || state === 'ahead') return;
  const message = `The database ${name} ${SCHEMA_REFUSALS[state]}`;
  // it may be migrated, or copied to its end
  throw new AppError('unavailable', message, { headers: { 'retry-after': '5' } });
}

/**
 * What a server may count on, chosen once, at the start.
 *
 * `shared`: its process lives until it is told to stop. Requests share its connections, and timers do what is due.
 * `perRequest`: its process may freeze after any answer, and may never wake again. Each request has everything for itself,
 * does what is due before it shows it, and leaves nothing under way.
 */
export type ContextKind = 'shared' | 'perRequest';

const KINDS: Record<string, ContextKind> = { shared: 'shared', 'per-request': 'perRequest' };

/** The kind that the environment names; otherwise that of the host. */
export function contextKind(env: Record<string, string | undefined>): ContextKind {
  const named = env.INTERLUDE_CONTEXT;
  if (named) return KINDS[named] ?? 'shared';
  return env.VERCEL === '1' ? 'perRequest' : 'shared';
}

/** @throws AppError `unavailable` for a name that is none, and for a file where none can be kept */
export function checkContext(env: Record<string, string | undefined>, kind: ContextKind): void {
  const named = env.INTERLUDE_CONTEXT;
  if (named && KINDS[named] === undefined) {
    throw new AppError('unavailable', `INTERLUDE_CONTEXT is ${JSON.stringify(named)}. Use shared or per-request.`);
  }
  if (kind === 'shared' || /^(libsql|https?|wss?):/.test(env.INTERLUDE_DATABASE_URL ?? '')) return;
  throw new AppError(
    'unavailable',
    'Nothing on disk outlives a request here. Set INTERLUDE_DATABASE_URL to a libSQL server, such as libsql://<host>.',
  );
}
