import { type InStatement, LibsqlError } from '@libsql/client';
import type { LocalConnection, Place } from './local-connection';
import { type Reader, type ResultRows, runInOrder, type Snapshot } from './reader';
import { Yielder } from './yield-to-loop';

/** Maximum concurrent reads; further reads wait. ReadQueue allows far fewer heavy reads. */
const MAX_CONNECTIONS = 8;

/**
 * Reads from a database file, over connections that are opened on first use. A batch runs in a transaction, yielding to the
 * event loop between its statements.
 *
 * Ordering: readers get connections in the order of their requests.
 * Failure: a connection with a failed read is closed, and the next read opens another.
 */
export class LocalReader implements Reader {
  readonly #open: () => LocalConnection;
  readonly #place: Place;
  readonly #idle: LocalConnection[] = [];
  readonly #waiting: { resolve(connection: LocalConnection): void; reject(error: unknown): void }[] = [];
  #count = 0;
  #isClosed = false;

  constructor(open: () => LocalConnection, place: Place) {
    this.#open = open;
    this.#place = place;
  }

  async execute(statement: InStatement): Promise<ResultRows> {
    const connection = await this.#acquire();
    try {
      return await connection.execute(statement, this.#place);
    } finally {
      this.#release(connection);
    }
  }

  async batch(statements: readonly InStatement[]): Promise<ResultRows[]> {
    const snapshot = await this.transaction();
    try {
      return await snapshot.batch([...statements]);
    } finally {
      await snapshot.end();
    }
  }

  async transaction(): Promise<Snapshot & { end(): Promise<void> }> {
    const connection = await this.#acquire();
    try {
      await connection.run('BEGIN', 'loop');
    } catch (error) {
      this.#discard(connection);
      throw error;
    }
    let ended: Promise<void> | null = null;
    const end = () => {
      ended ??= this.#endSnapshot(connection);
      return ended;
    };
    const yielder = new Yielder();
    const execute: Snapshot['execute'] = async (statement) => {
      const answer = await connection.execute(statement, this.#place);
      // A thread's result arrives in a new turn of the event loop.
      if (this.#place === 'loop') await yielder.yieldIfDue();
      return answer;
    };
    return {
      execute,
      batch: (statements) => runInOrder(statements, execute),
      end,
      close: () => void end(),
    };
  }

  /** Finishes running reads, and refuses new ones. */
  close(): void {
    this.#isClosed = true;
    for (const connection of this.#idle.splice(0)) connection.close();
  }

  /** Never rejects. */
  async #endSnapshot(connection: LocalConnection): Promise<void> {
    try {
      if (connection.isInTransaction) await connection.run('ROLLBACK', 'loop');
      this.#release(connection);
    } catch {
      this.#discard(connection);
    }
  }

  #acquire(): Promise<LocalConnection> {
    if (this.#isClosed) return Promise.reject(new LibsqlError('The database is closed', 'CLIENT_CLOSED'));
    const idle = this.#idle.pop();
    if (idle !== undefined) return Promise.resolve(idle);
    if (this.#count >= MAX_CONNECTIONS) {
      return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
    }
    return this.#openOne();
  }

  async #openOne(): Promise<LocalConnection> {
    const connection = this.#open();
    this.#count += 1;
    return connection;
  }

  #release(connection: LocalConnection): void {
    if (!connection.isSound) {
      this.#discard(connection);
      return;
    }
    const next = this.#waiting.shift();
    if (next !== undefined) next.resolve(connection);
    else if (this.#isClosed) this.#discard(connection);
    else this.#idle.push(connection);
  }

  #discard(connection: LocalConnection): void {
    connection.close();
    this.#count -= 1;
    this.#openForNext();
  }

  #openForNext(): void {
    const next = this.#waiting.shift();
    if (next === undefined) return;
    void this.#openOne().then(next.resolve, (error) => {
      next.reject(error);
      this.#openForNext();
    });
  }
}
