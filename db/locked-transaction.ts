import type { InStatement } from '@libsql/client';
import { PER_COMMIT } from './drafted-positions';
import { forbidden, isForbidden, requireAllowed } from './may-write';
import { COMMITTED, isBroken, isRead, NOTE, TOUCH } from './optimistic-transaction';
import type { ResultRows } from './reader';
import type { TransactionSource } from './write-queue';
import type { WriteKey, WriteTransaction } from './writes';

type HeldTransaction = Awaited<ReturnType<TransactionSource['transaction']>>;

/**
 * A write transaction that holds a server's one write lock while its job thinks: for a job that others have come before
 * again and again. Others see what it writes as they see an optimistic commit.
 *
 * Failure: a process that freezes in the middle of it holds up all writers until the server ends the transaction, after
 * seconds. So it is the last resort.
 */
export class LockedTransaction implements WriteTransaction {
  readonly #source: HeldTransaction;
  readonly #first: number;
  readonly #touched = new Set<WriteKey>();
  readonly #mark = crypto.randomUUID();
  #position: number;
  #counter: number;
  #hasWritten = false;

  private constructor(source: HeldTransaction, counter: number) {
    this.#source = source;
    this.#counter = counter;
    this.#first = (Math.floor(counter / PER_COMMIT) + 1) * PER_COMMIT;
    this.#position = this.#first;
  }

  /** @param version as for `OptimisticTransaction` */
  static async begin(transactions: TransactionSource, version: number | null): Promise<LockedTransaction> {
    const source = await transactions.transaction('write');
    try {
      const guards = version === null ? [] : [requireAllowed(version)];
      const answers = await source.batch([...guards, 'SELECT position FROM counter']);
      return new LockedTransaction(source, Number(answers.at(-1)?.rows[0]?.position ?? 0));
    } catch (error) {
      await source.close();
      throw isForbidden(error) ? forbidden(error) : error;
    }
  }

  async position(): Promise<number> {
    return this.#position;
  }

  async moveTo(position: number): Promise<void> {
    if (position < this.#position) throw new RangeError(`no position of this transaction: ${position}`);
    this.#position = position;
  }

  /** They are. */
  fixPositions(): void {}

  touch(...keys: WriteKey[]): void {
    for (const key of keys) this.#touched.add(key);
  }

  /** Nobody changes anything meanwhile. */
  rely(): void {}

  async execute(statement: InStatement): Promise<ResultRows> {
    const [answer] = await this.batch([statement]);
    return answer ?? { rows: [] };
  }

  async batch(statements: InStatement[]): Promise<ResultRows[]> {
    this.#hasWritten ||= statements.some((each) => !isRead(typeof each === 'string' ? each : each.sql));
    const moves = this.#moves();
    return (await this.#source.batch([...moves, ...statements])).slice(moves.length);
  }

  /**
   * @param find reads outside of the transaction, where writes are answered
   * @returns the counter behind it; null if it has not moved
   */
  async commit(find: (statements: InStatement[]) => Promise<ResultRows[]>): Promise<number | null> {
    try {
      const hasMoved = this.#position > this.#first || (this.#hasWritten && this.#touched.size > 0);
      if (hasMoved) {
        const keys = JSON.stringify([...this.#touched]);
        const end = [
          { sql: NOTE, args: [this.#mark] },
          { sql: TOUCH, args: [keys] },
        ];
        await this.#source.batch([...this.#moves(true), ...end]);
      }
      await this.#source.commit();
      return hasMoved ? this.#position : null;
    } catch (error) {
      const [found] = isBroken(error) ? await find([{ sql: COMMITTED, args: [this.#mark] }]) : [];
      if (found === undefined || found.rows.length === 0) throw error;
      return this.#position;
    }
  }

  /** Undoes what was not committed, and lets others in. */
  async close(): Promise<void> {
    await this.#source.close();
  }

  /** What is looked for in the counter is there when it is. */
  #moves(atEnd = false): InStatement[] {
    if (this.#counter === this.#position || (!atEnd && this.#position === this.#first)) return [];
    this.#counter = this.#position;
    return [{ sql: MOVE, args: [this.#position] }];
  }
}

const MOVE = `INSERT INTO counter (id, position) VALUES (1, ?1)
  ON CONFLICT (id) DO UPDATE SET position = excluded.position`;
