import { type Position, positionFromNumber } from '@interlude/protocol/position';
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
  CommitListeners,
  forbidden,
  isForbidden,
  type JobOptions,
  queueFull,
  requireAllowed,
  shuttingDown,
  type WriteJob,
  type WriteKey,
  type Writes,
  type WriteTransaction,
} from './writes';
import { pause } from './yield-to-loop';

export interface OptimisticLimits {
  /** Maximum waiting jobs, and maximum jobs that run at once. */
  maxJobs: number;
  concurrency: number;
  /** Maximum bytes of the requests behind waiting and running jobs. */
  maxBytes: number;
  /** Conflicts after which a job takes the lock. */
  mostConflicts: number;
  /** Jobs wait for earlier ones with the same key. False for a process that serves one request. */
  hasLines: boolean;
  /** See `OptimisticTransaction`. */
  version: number | null;
}

const LIMITS: OptimisticLimits = {
  maxJobs: 4096,
  concurrency: 64,
  maxBytes: 64 * 1024 * 1024,
  mostConflicts: 12,
  hasLines: true,
  version: null,
};

const FIRST_PAUSE_MS = 5;
const MAX_PAUSE_MS = 250;
/** Milliseconds to wait for the server's lock. */
const LOCK_MS = 20_000;

/**
 * Writes to a libSQL server. Jobs run concurrently, here and in other processes: each reads, computes, and commits in one
 * batch, which changes nothing if another job touched the same keys in between. Then the job runs again.
 *
 * Ordering: jobs of this process that share a key run one after the other, in the order they arrived.
 * Failure: no lock is held between two requests, so a process that dies or freezes holds up no other. A job with too
 * many conflicts takes the server's lock, so it completes as well.
 */
export class OptimisticWrites implements Writes {
  readonly #server: BatchServer & TransactionSource;
  readonly #limits: OptimisticLimits;
  readonly #damage: Damage | null;
  readonly #listeners = new CommitListeners();
  readonly #running = new Set<Promise<unknown>>();
  /** The last queued job of each key. */
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

  get concurrency(): number {
    return this.#limits.concurrency;
  }

  run<T>(job: WriteJob<T>, { bytes = 0, keys = [] }: JobOptions = {}): Promise<T> {
    if (this.#isClosed) return Promise.reject(shuttingDown());
    const isFull = this.#running.size >= this.#limits.maxJobs || this.#bytes + bytes > this.#limits.maxBytes;
    // An empty queue accepts one job of any size.
    if (isFull && this.#running.size > 0) return Promise.reject(queueFull());
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
    return this.#listeners.add(listener);
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
    if (this.#busy >= this.#limits.concurrency) await new Promise<void>((resolve) => this.#turns.push(resolve));
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
    let hasCollided = false;
    for (let conflicts = 0; conflicts < mostConflicts; ) {
      const refusal = this.#damage?.refusal() ?? null;
      if (refusal !== null) throw refusal;
      try {
        const transaction = new OptimisticTransaction(this.#server, version, isFixed ? await this.#counter() : null);
        transaction.touch(...keys);
        const value = await job(transaction);
        const newest = await transaction.commit();
        if (newest !== null) this.#announce(newest);
        return transaction.resultOf(value, newest);
      } catch (error) {
        if (error instanceof NeedsFixedPositions || error instanceof PositionCollision) {
          isFixed ||= error instanceof NeedsFixedPositions || hasCollided;
          hasCollided = true;
          continue;
        }
        if (!(error instanceof Conflict)) throw this.#failure(error);
        // Jitter keeps two jobs from conflicting again.
        await pause(Math.min(FIRST_PAUSE_MS * 2 ** conflicts, MAX_PAUSE_MS) * Math.random());
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

  /** Responses may arrive out of commit order. */
  #announce(position: number): void {
    if (position <= this.#newest) return;
    this.#newest = position;
    this.#listeners.announce(positionFromNumber(position));
  }
}

type HeldTransaction = Awaited<ReturnType<TransactionSource['transaction']>>;

/**
 * A write transaction that holds the server's write lock while its job runs, for a job with too many conflicts. Other
 * processes detect its writes like those of an optimistic commit.
 *
 * Failure: a process that freezes within it holds up all writers until the server ends the transaction, after seconds.
 * So this is the last resort.
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
    if (position < this.#position) throw new RangeError(`the position ${position} precedes this transaction`);
    this.#position = position;
  }

  /** Positions are already fixed. */
  fixPositions(): void {}

  touch(...keys: WriteKey[]): void {
    for (const key of keys) this.#touched.add(key);
  }

  /** No other transaction commits while the lock is held. */
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
   * @param find queries the primary, outside of the transaction
   * @returns the counter after the commit; null if it has not moved
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

  async close(): Promise<void> {
    await this.#source.close();
  }

  /** Advances the counter before statements that may read it. */
  #moves(atEnd = false): InStatement[] {
    if (this.#counter === this.#position || (!atEnd && this.#position === this.#first)) return [];
    this.#counter = this.#position;
    return [{ sql: MOVE_COUNTER, args: [this.#position] }];
  }
}

const MOVE_COUNTER = `INSERT INTO counter (id, position) VALUES (1, ?1)
  ON CONFLICT (id) DO UPDATE SET position = excluded.position`;
