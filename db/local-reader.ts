import { type InStatement, LibsqlError } from '@libsql/client';
import type { LocalConnection, Place } from './local-connection';
import { type Reader, type ResultRows, runInOrder, type Snapshot } from './reader';
import { Yielder } from './yield-to-loop';

/** Reads that may be under way; further ones wait. Far fewer of them are heavy: see ReadQueue. */
const MAX_CONNECTIONS = 8;

/**
 * A database file to read from, over connections that are opened on first use. Several statements of one
 * moment are a transaction; others get their turns between them.
 *
 * Ordering: readers get their connections in the order in which they asked.
 * Failure: a connection at which a read failed is not used again: the next read opens another.
 */
export class LocalReader implements Reader {
  readonly #open: () => LocalConnection;
  readonly #place: Place;
  readonly #idle: LocalConnection[] = [];
  readonly #waiting: { resolve(connection: LocalConnection): void; reject(error: unknown): void }[] = [];
  #count = 0;
  #isClosed = false;

  /** @param open opens a connection */
  constructor(open: () => LocalConnection, place: Place) {
    this.#open = open;
    this.#place = place;
  }

  async execute(statement: InStatement): Promise<ResultRows> {
    const connection = await this.#take();
    try {
      return await connection.execute(statement, this.#place);
    } finally {
      this.#giveBack(connection);
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
    const connection = await this.#take();
    try {
      await connection.run('BEGIN', 'loop');
    } catch (error) {
      this.#giveUp(connection);
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
      // a thread's answer comes in a turn of its own
      if (this.#place === 'loop') await yielder.rest();
      return answer;
    };
    return {
      execute,
      batch: (statements) => runInOrder(statements, execute),
      end,
      close: () => void end(),
    };
  }

  /** What is under way is finished; nothing more is taken. */
  close(): void {
    this.#isClosed = true;
    for (const connection of this.#idle.splice(0)) connection.close();
  }

  /** Never rejects. */
  async #endSnapshot(connection: LocalConnection): Promise<void> {
    try {
      if (connection.isInTransaction) await connection.run('ROLLBACK', 'loop');
      this.#giveBack(connection);
    } catch {
      this.#giveUp(connection);
    }
  }

  #take(): Promise<LocalConnection> {
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

  #giveBack(connection: LocalConnection): void {
    if (!connection.isSound) {
      this.#giveUp(connection);
      return;
    }
    const next = this.#waiting.shift();
    if (next !== undefined) next.resolve(connection);
    else if (this.#isClosed) this.#giveUp(connection);
    else this.#idle.push(connection);
  }

  #giveUp(connection: LocalConnection): void {
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
