import { AppError } from '@interlude/protocol/errors';
import { type Position, positionFromNumber } from '@interlude/protocol/position';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import type { InStatement } from '@libsql/client';
import type { Damage } from './damage';
import { databaseFailure, retryWhileBusy } from './database-error';
import {
  type BatchServer,
  COMMITTED,
  Conflict,
  isBroken,
  isRead,
  NeedsFixedPositions,
  NOTE,
  OptimisticTransaction,
  TOUCH,
} from './optimistic-transaction';
import { PER_COMMIT, PositionCollision } from './provisional-positions';
import type { ResultRows } from './reader';
import type { TransactionSource } from './write-queue';
import {
  forbidden,
  isForbidden,
  type JobOptions,
  requireAllowed,
  type WriteJob,
  type WriteKey,
  type Writes,
  type WriteTransaction,
} from './writes';
import { pause } from './yield-to-loop';

/**
 * Writes to a libSQL server. Jobs run beside each other, here and in other processes: each reads, thinks, and commits in
 * one go that changes nothing if somebody has touched the same keys in between. Then it runs again.
 *
 * Ordering: jobs of this process that name the same key run one after the other, in the order in which they came.
 * Failure: nobody waits for a process that dies or freezes, whenever it does: there is no lock between two requests. Only a
 * job that others have come before again and again takes the server's lock, so that it comes to an end, too.
 */
export interface OptimisticLimits {
  /** Most jobs that may wait, and most that run at once. */
  maxJobs: number;
  atOnce: number;
  /** Most weight of both: the bytes of the requests behind the jobs. */
  maxBytes: number;
  /** How often others may come before a job until it locks them out. */
  mostConflicts: number;
  /** Whether jobs wait for those that came before. Where requests share nothing, each has to find its own way. */
  hasLines: boolean;
  /** As for `OptimisticTransaction`. */
  version: number | null;
}

const LIMITS: OptimisticLimits = {
  maxJobs: 4096,
  atOnce: 64,
  maxBytes: 64 * 1024 * 1024,
  mostConflicts: 12,
  hasLines: true,
  version: null,
};

const RETRY_SOON = { 'retry-after': '1' };
const FIRST_PAUSE_MS = 5;
const MOST_PAUSE_MS = 250;
/** How long to wait for the lock. */
const LOCK_MS = 20_000;

export class OptimisticWrites implements Writes {
  readonly #server: BatchServer & TransactionSource;
  readonly #limits: OptimisticLimits;
  readonly #damage: Damage | null;
  readonly #listeners = new Set<(position: Position) => void>();
  readonly #running = new Set<Promise<unknown>>();
  /** The last job of each key. */
  readonly #lines = new Map<WriteKey, Promise<unknown>>();
  readonly #turns: (() => void)[] = [];
  #busy = 0;
  #bytes = 0;
  #newest = 0;
  #isClosed = false;

  constructor(
    server: BatchServer & TransactionSource,
    limits: Partial<OptimisticLimits> = {},
    damage: Damage | null = null,
  ) {
    this.#server = server;
    this.#limits = { ...LIMITS, ...limits };
    this.#damage = damage;
  }

  get atOnce(): number {
    return this.#limits.atOnce;
  }

  run<T>(job: WriteJob<T>, { bytes = 0, keys = [] }: JobOptions = {}): Promise<T> {
    if (this.#isClosed) return Promise.reject(unavailable('Interlude is shutting down. Send this again in a moment.'));
    const isFull = this.#running.size >= this.#limits.maxJobs || this.#bytes + bytes > this.#limits.maxBytes;
    // an empty queue accepts a single job of any weight
    if (isFull && this.#running.size > 0) {
      return Promise.reject(unavailable('Too many writes are waiting. Send this again in a second.'));
    }
    this.#bytes += bytes;
    const before = this.#limits.hasLines ? keys.map((key) => this.#lines.get(key)) : [];
    const done = this.#inTurn(before, () => this.#untilDone(job, keys));
    const over = done
      .catch(() => {})
      .then(() => {
        this.#bytes -= bytes;
        this.#running.delete(over);
        for (const key of keys) if (this.#lines.get(key) === over) this.#lines.delete(key);
      });
    this.#running.add(over);
    if (this.#limits.hasLines) for (const key of keys) this.#lines.set(key, over);
    return done;
  }

  onCommit(listener: (position: Position) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get load() {
    return { jobs: this.#running.size, bytes: this.#bytes };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  async #inTurn<T>(before: readonly (Promise<unknown> | undefined)[], work: () => Promise<T>): Promise<T> {
    await Promise.all(before);
    if (this.#busy >= this.#limits.atOnce) await new Promise<void>((resolve) => this.#turns.push(resolve));
    else this.#busy += 1;
    try {
      return await work();
    } finally {
      const next = this.#turns.shift();
      if (next === undefined) this.#busy -= 1;
      else next();
    }
  }

  async #untilDone<T>(job: WriteJob<T>, keys: readonly WriteKey[]): Promise<T> {
    const { mostConflicts, version } = this.#limits;
    let isFixed = false;
    let isLookalike = false;
    for (let conflicts = 0; conflicts < mostConflicts; ) {
      const refusal = this.#damage?.refusal() ?? null;
      if (refusal !== null) throw refusal;
      try {
        const transaction = new OptimisticTransaction(this.#server, version, isFixed ? await this.#counter() : null);
        transaction.touch(...keys);
        const value = await job(transaction);
        const newest = await transaction.commit();
        if (newest !== null) this.#announce(newest);
        return transaction.given(value, newest);
      } catch (error) {
        if (error instanceof NeedsFixedPositions || error instanceof PositionCollision) {
          isFixed ||= error instanceof NeedsFixedPositions || isLookalike;
          isLookalike = true;
          continue;
        }
        if (!(error instanceof Conflict)) throw this.#failure(error);
        // jitter, so that two do not meet again
        await pause(Math.min(FIRST_PAUSE_MS * 2 ** conflicts, MOST_PAUSE_MS) * Math.random());
        conflicts += 1;
      }
    }
    return await this.#locked(job, keys).catch((error) => {
      throw this.#failure(error);
    });
  }

  async #locked<T>(job: WriteJob<T>, keys: readonly WriteKey[]): Promise<T> {
    const transaction = await retryWhileBusy(
      () => LockedTransaction.begin(this.#server, this.#limits.version),
      LOCK_MS,
    );
    try {
      transaction.touch(...keys);
      const value = await job(transaction);
      const newest = await transaction.commit((statements) => this.#server.batch(statements, 'write'));
      if (newest !== null) this.#announce(newest);
      return value;
    } finally {
      await transaction.close();
    }
  }

  #failure(error: unknown): unknown {
    return this.#damage?.failure(error) ?? databaseFailure(error);
  }

  async #counter(): Promise<number> {
    const [found] = await this.#server.batch(['SELECT position FROM counter'], 'read');
    return Number(found?.rows[0]?.position ?? 0);
  }

  /** Answers may come in another order than the commits they are of. */
  #announce(position: number): void {
    if (position <= this.#newest) return;
    this.#newest = position;
    for (const listener of this.#listeners) {
      try {
        listener(positionFromNumber(position));
      } catch (error) {
        serverLog('error', 'a commit listener failed', { error });
      }
    }
  }
}

function unavailable(message: string, cause?: unknown): AppError {
  return new AppError('unavailable', message, { cause, headers: RETRY_SOON });
}

type HeldTransaction = Awaited<ReturnType<TransactionSource['transaction']>>;

/**
 * A write transaction that holds a server's one write lock while its job thinks: for a job that others have come before
 * again and again. Others see what it writes as they see an optimistic commit.
 *
 * Failure: a process that freezes in the middle of it holds up all writers until the server ends the transaction, after
 * seconds. So it is the last resort.
 */
class LockedTransaction implements WriteTransaction {
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
    return [{ sql: MOVE_COUNTER, args: [this.#position] }];
  }
}

const MOVE_COUNTER = `INSERT INTO counter (id, position) VALUES (1, ?1)
  ON CONFLICT (id) DO UPDATE SET position = excluded.position`;
