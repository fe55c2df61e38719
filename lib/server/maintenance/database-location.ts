import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CliError, EXIT } from '@interlude/runner/cli/command';
import { openDataDir } from '@interlude/runner/cli/dashboard';
import { makePrivate } from '@interlude/runner/host/data-folder.mjs';
import { dataFolder } from '@interlude/runner/host/own-program.mjs';
import type { InStatement } from '@libsql/client';
import { databaseOptions } from '@/db/client';
import { retryWhileBusy } from '@/db/database-error';
import { setAsideForeignLog } from '@/db/database-file';
import { LocalConnection } from '@/db/local-connection';
import { LocalReader } from '@/db/local-reader';
import { migrate } from '@/db/migrate';
import { connect, MAINTENANCE_MS, serverAddress } from '@/db/open-server';
import { type Reader, type ResultRows, runInOrder } from '@/db/reader';
import { type TransactionSource, WriteQueue } from '@/db/write-queue';

type Environment = Record<string, string | undefined>;

/** Location of a database. Never print it: `authToken` is a secret. */
export type DatabaseLocation =
  | { kind: 'file'; path: string }
  | { kind: 'server'; url: string; authToken: string | undefined };

/** Short, so another process's lock is reported quickly; the caller retries. */
export const LOCK_TIMEOUT_MS = 20;

const SERVER = /^(libsql|https?|wss?):\/\//;

/** The dashboard's own database. @throws DataFolderError */
export function dashboardLocation(env: Environment): DatabaseLocation {
  const { url, authToken } = databaseOptions({
    ...env,
    INTERLUDE_DATA_DIR: dataFolder(env),
  });
  if (!url.startsWith('file:')) return { kind: 'server', url, authToken };
  if (!env.INTERLUDE_DATABASE_URL) return { kind: 'file', path: join(openDataDir(env), 'interlude.db') };
  return { kind: 'file', path: fileOf(url) };
}

/**
 * Parses a command-line argument: a relative path, `file:…` or a server URL.
 *
 * @param authToken token of the server, if it is one
 */
export function parseLocation(text: string, authToken: string | undefined): DatabaseLocation {
  if (SERVER.test(text)) {
    if (!URL.canParse(text)) throw new CliError(EXIT.usage, 'that is not a server URL');
    return { kind: 'server', url: text, authToken };
  }
  if (text.startsWith('file:'))
    return { kind: 'file', path: fileOf(databaseOptions({ INTERLUDE_DATABASE_URL: text }).url) };
  return { kind: 'file', path: resolve(text) };
}

function fileOf(url: string): string {
  return decodeURIComponent(new URL(url).pathname);
}

/** Printable name, without credentials of a URL. */
export function locationName(place: DatabaseLocation): string {
  return place.kind === 'file' ? place.path : new URL(place.url).host;
}

export interface Reading {
  reader: Reader;
  close(): void;
}

/** Opens an existing database of any schema for reading. @throws CliError if it doesn't exist */
export async function openToRead(place: DatabaseLocation): Promise<Reading> {
  if (place.kind === 'server') {
    const { client, close } = connect(serverAddress(place.url, place.authToken), MAINTENANCE_MS);
    return { reader: client, close };
  }
  const path = await existingFile(place);
  const reader = new LocalReader(() => new LocalConnection(path, LOCK_TIMEOUT_MS), 'thread');
  return { reader, close: () => reader.close() };
}

/** Connects to an existing file. @throws CliError if it doesn't exist */
export async function openFile(place: DatabaseLocation & { kind: 'file' }): Promise<LocalConnection> {
  return new LocalConnection(await existingFile(place), LOCK_TIMEOUT_MS);
}

async function existingFile({ path }: DatabaseLocation & { kind: 'file' }): Promise<string> {
  if (!existsSync(path)) throw new CliError(EXIT.failed, `there is no database at ${path}`);
  // SQLite would apply a WAL left behind by another database, so it is set aside first
  await setAsideForeignLog(path);
  return path;
}

const BUSY_MS = 10_000;
const MIGRATIONS = fileURLToPath(new URL('../../../db/migrations', import.meta.url));

export interface CopyTarget {
  execute(statement: InStatement): Promise<ResultRows>;
  /** Atomic. */
  write(statements: InStatement[]): Promise<ResultRows[]>;
  migrate(): Promise<void>;
  /** Makes all further writes durable before `write` returns, including everything before them. */
  settle(): Promise<void>;
  close(): Promise<void>;
}

export function openTarget(place: DatabaseLocation): CopyTarget {
  return place.kind === 'file' ? fileTarget(place.path) : serverTarget(place);
}

function serverTarget({ url, authToken }: DatabaseLocation & { kind: 'server' }): CopyTarget {
  const { client, server, close } = connect(serverAddress(url, authToken), MAINTENANCE_MS);
  return {
    execute: (statement) => client.execute(statement),
    write: (statements) => server.batch(statements, 'write'),
    migrate: () => makeTables(server),
    settle: async () => {},
    close: async () => close(),
  };
}

function fileTarget(path: string): CopyTarget {
  makePrivate(path);
  const connection = new LocalConnection(path, LOCK_TIMEOUT_MS);
  const source = transactionsOf(connection);
  let isConfigured = false;
  const configure = async () => {
    if (isConfigured) return;
    isConfigured = true;
    // safe, because no process uses the file before the copy is complete (copy-database.ts)
    await retryWhileBusy(
      () =>
        connection.run(
          'PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL',
          'thread',
        ),
      BUSY_MS,
    );
  };
  return {
    execute: (statement) => connection.execute(statement, 'thread'),
    write: async (statements) => {
      await configure();
      const transaction = await retryWhileBusy(() => source.transaction('write'), BUSY_MS);
      try {
        const answers = await transaction.batch(statements);
        await transaction.commit();
        return answers;
      } finally {
        await transaction.close();
      }
    },
    migrate: async () => {
      await configure();
      await makeTables(source);
    },
    settle: async () => connection.run('PRAGMA synchronous = FULL', 'thread'),
    close: async () => {
      await connection.run('PRAGMA wal_checkpoint(TRUNCATE)', 'thread').catch(() => undefined);
      connection.close();
    },
  };
}

async function makeTables(source: TransactionSource): Promise<void> {
  await migrate(new WriteQueue(source), (tag) => readFile(join(MIGRATIONS, `${tag}.sql`), 'utf8'));
}

function transactionsOf(connection: LocalConnection): TransactionSource {
  return {
    transaction: async () => {
      await connection.run('BEGIN IMMEDIATE', 'thread');
      const execute = (statement: InStatement) => connection.execute(statement, 'thread');
      return {
        execute,
        batch: (statements) => runInOrder(statements, execute),
        commit: () => connection.run('COMMIT', 'thread'),
        close: async () => {
          if (connection.isInTransaction) await connection.run('ROLLBACK', 'thread').catch(() => undefined);
        },
      };
    },
  };
}
