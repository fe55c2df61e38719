import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makePrivate } from '@interlude/runner/data-folder.mjs';
import type { InStatement } from '@libsql/client';
import { retryWhileBusy } from '@/db/database-error';
import { LocalConnection } from '@/db/local-connection';
import { migrate } from '@/db/migrate';
import { connect, MAINTENANCE_MS, serverAddress } from '@/db/open-server';
import { type ResultRows, runInOrder } from '@/db/reader';
import { type TransactionSource, WriteQueue } from '@/db/write-queue';
import { LOCK_TIMEOUT_MS, type Place } from './place';

const BUSY_MS = 10_000;
const MIGRATIONS = fileURLToPath(new URL('../../../db/migrations', import.meta.url));

/** A database that a copy is written to. */
export interface CopyTarget {
  execute(statement: InStatement): Promise<ResultRows>;
  /** All of them or none. */
  write(statements: InStatement[]): Promise<ResultRows[]>;
  /** Makes our tables. */
  migrate(): Promise<void>;
  /** What is written from here on is on the disk when `write` returns, and so is all before it. */
  settle(): Promise<void>;
  close(): Promise<void>;
}

export function openTarget(place: Place): CopyTarget {
  return place.kind === 'file' ? fileTarget(place.path) : serverTarget(place);
}

function serverTarget({ url, authToken }: Place & { kind: 'server' }): CopyTarget {
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
  let isBegun = false;
  const begin = async () => {
    if (isBegun) return;
    isBegun = true;
    // until the end it is no database of anybody's: see copy-database.ts
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
      await begin();
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
      await begin();
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
