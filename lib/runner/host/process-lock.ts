import { type Client, createClient, LibsqlError, type Transaction } from '@libsql/client';
import { makePrivate } from './data-folder.mjs';

/**
 * A lock between processes: an open write transaction on a SQLite file. The kernel releases it with the process, so locks
 * never become stale.
 *
 * Failure: `acquire` never waits; its error names the process that holds the lock.
 */
export class ProcessLock {
  readonly #client: Client;
  readonly #transaction: Transaction;

  private constructor(client: Client, transaction: Transaction) {
    this.#client = client;
    this.#transaction = transaction;
  }

  /**
   * @param what name for the error
   * @throws ProcessLockedError if this or another process holds it
   */
  static async acquire(file: string, what = file): Promise<ProcessLock> {
    makePrivate(file);
    const client = createClient({ url: `file:${file}`, concurrency: 1 });
    try {
      const holder = await client
        .execute('SELECT pid FROM holder')
        .then((result) => Number(result.rows[0]?.pid ?? 0))
        .catch(() => 0);
      try {
        // Committed before the lock's own transaction, so that other processes can read it.
        await client.batch(
          [
            'CREATE TABLE IF NOT EXISTS holder (one INTEGER PRIMARY KEY, pid INTEGER NOT NULL)',
            { sql: 'INSERT OR REPLACE INTO holder (one, pid) VALUES (1, ?)', args: [process.pid] },
          ],
          'write',
        );
        return new ProcessLock(client, await client.transaction('write'));
      } catch (error) {
        if (error instanceof LibsqlError && error.code === 'SQLITE_BUSY') throw new ProcessLockedError(what, holder);
        throw error;
      }
    } catch (error) {
      client.close();
      throw error;
    }
  }

  async release(): Promise<void> {
    await this.#transaction.rollback();
    this.#client.close();
  }
}

export class ProcessLockedError extends Error {
  readonly pid: number;

  constructor(what: string, pid: number) {
    super(`${what} is in use by process ${pid || 'unknown'}; stop it first`);
    this.name = 'ProcessLockedError';
    this.pid = pid;
  }
}
