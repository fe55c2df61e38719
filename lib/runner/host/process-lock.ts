import { type Client, createClient, LibsqlError, type Transaction } from '@libsql/client';
import { makePrivate } from './data-folder.mjs';

/**
 * What only one process may do at a time.
 *
 * The lock is an open write transaction on a file. The kernel drops it with the process, however that dies, so there is
 * no stale lock to clear and no pid to guess about. It costs nothing after it was taken.
 *
 * Failure: a second process learns at once who holds the lock.
 */
export class ProcessLock {
  readonly #client: Client;
  readonly #held: Transaction;

  private constructor(client: Client, held: Transaction) {
    this.#client = client;
    this.#held = held;
  }

  /**
   * @param what is locked, for people
   * @throws ProcessLockedError when it is held already, by this process or another
   */
  static async take(file: string, what = file): Promise<ProcessLock> {
    makePrivate(file);
    const client = createClient({ url: `file:${file}`, concurrency: 1 });
    try {
      const holder = await client
        .execute('SELECT pid FROM holder')
        .then((result) => Number(result.rows[0]?.pid ?? 0))
        .catch(() => 0);
      try {
        // Written before the transaction that stays open: what is not committed could not be read by the second.
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
    await this.#held.rollback();
    this.#client.close();
  }
}

export class ProcessLockedError extends Error {
  readonly pid: number;

  constructor(what: string, pid: number) {
    super(`${what} is in use by process ${pid || 'unknown'}; stop that one first`);
    this.name = 'ProcessLockedError';
    this.pid = pid;
  }
}
