import type { Position } from '@interlude/protocol/position';
import type { Damage } from './damage';
import { databaseFailure, databaseFault, retryWhileBusy } from './database-error';
import {
  allowed,
  CommitListeners,
  forbidden,
  type JobOptions,
  queueFull,
  shuttingDown,
  type WriteJob,
  type Writes,
  type WriteTransaction,
} from './writes';
import { yieldToLoop } from './yield-to-loop';

type Statements = Pick<WriteTransaction, 'execute' | 'batch'>;

/** @internal */
export interface TransactionSource {
  transaction(mode: 'write'): Promise<Statements & { commit(): Promise<void>; close(): void | Promise<void> }>;
}

interface WriteQueueLimits {
  /** Maximum waiting jobs. */
  maxJobs: number;
  /** Maximum bytes of the requests behind waiting jobs. */
  maxBytes: number;
  /** Maximum bytes per transaction; a larger job runs alone. */
  maxGroupBytes: number;
  /** Maximum jobs per transaction. */
  maxGroupJobs: number;
  /** Milliseconds during which a transaction accepts jobs. The remaining jobs go first in the next one. */
  maxGroupMs: number;
  /** Milliseconds to retry while another process has locked the database. */
  busyTimeoutMs: number;
  /** Version of the writer, see `requireAllowed`; null to skip the check. */
  version: number | null;
}

const LIMITS: WriteQueueLimits = {
  maxJobs: 4096,
  maxBytes: 64 * 1024 * 1024,
  maxGroupBytes: 8 * 1024 * 1024,
  maxGroupJobs: 256,
  maxGroupMs: 50,
  busyTimeoutMs: 5000,
  version: null,
};

interface Waiting {
  job: WriteJob<unknown>;
  bytes: number;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

type Outcome = { ok: true; value: unknown } | { ok: false; error: unknown };

const MARK = 'SAVEPOINT job';
const UNDO = 'ROLLBACK TO job';
const UNMARK = 'RELEASE job';

/**
 * Writes to a database file. SQLite has one writer at a time, so this process has one writing connection, and commits
 * waiting jobs in groups: one fsync for many requests.
 *
 * Ordering: jobs run in the order they arrived, and positions follow that order. Listeners are called after all jobs of
 * the commit have their results.
 * Failure: each job of a group has a savepoint, so a job that throws is rolled back alone. Its error is delivered after the
 * commit: rows that it read from other jobs may still be rolled back. An error that aborts the transaction rolls back the
 * group, whose jobs then run again one by one: a job may run several times, and only its last run is kept. If a commit's
 * outcome is unknown (disk or connection failed), its jobs get `unavailable`, and the callers retry.
 */
export class WriteQueue implements Writes {
  readonly concurrency = 1;
  readonly #source: TransactionSource;
  readonly #limits: WriteQueueLimits;
  readonly #damage: Damage | null;
  readonly #listeners = new CommitListeners();
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #runningJobs = 0;
  #running: Promise<void> | null = null;
  #closed = false;
  #position: Position = '';

  /** @param damage receives every error; once it reports damage, the queue writes nothing more */
  constructor(source: TransactionSource, limits: Partial<WriteQueueLimits> = {}, damage: Damage | null = null) {
    this.#source = source;
    this.#damage = damage;
    this.#limits = { ...LIMITS, ...limits };
  }

  run<T>(job: WriteJob<T>, { bytes = 0 }: JobOptions = {}): Promise<T> {
    if (this.#closed) return Promise.reject(shuttingDown());
    const refusal = this.#damage?.refusal() ?? null;
    if (refusal !== null) return Promise.reject(refusal);
    const full = this.#waiting.length >= this.#limits.maxJobs || this.#waitingBytes + bytes > this.#limits.maxBytes;
    // An empty queue accepts one job of any size.
    if (full && this.#waiting.length > 0) return Promise.reject(queueFull());
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ job, bytes, resolve: resolve as (value: unknown) => void, reject });
      this.#waitingBytes += bytes;
      this.#running ??= this.#drain();
    });
  }

  onCommit(listener: (position: Position) => void): () => void {
    return this.#listeners.add(listener);
  }

  get load() {
    return { jobs: this.#waiting.length + this.#runningJobs, bytes: this.#waitingBytes };
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      // Waits one turn of the event loop. Small requests never yield to it, so without this, requests that arrive
      // together would never meet in the queue, and each would pay for its own fsync.
      await yieldToLoop();
      const group = this.#nextGroup();
      this.#runningJobs = group.length;
      if (await this.#commit(group)) continue;
      for (const waiting of group) await this.#commit([waiting]);
    }
    this.#runningJobs = 0;
    this.#running = null;
  }

  #nextGroup(): Waiting[] {
    let count = 0;
    let bytes = 0;
    for (const waiting of this.#waiting) {
      if (count === this.#limits.maxGroupJobs) break;
      if (count > 0 && bytes + waiting.bytes > this.#limits.maxGroupBytes) break;
      count += 1;
      bytes += waiting.bytes;
    }
    this.#waitingBytes -= bytes;
    return this.#waiting.splice(0, count);
  }

  #requeue(group: Waiting[]): void {
    this.#waiting.unshift(...group);
    for (const { bytes } of group) this.#waitingBytes += bytes;
  }

  /** @returns false if the jobs must run again, one by one */
  async #commit(group: Waiting[]): Promise<boolean> {
    const refusal = this.#damage?.refusal() ?? null;
    if (refusal !== null) {
      for (const waiting of group) waiting.reject(refusal);
      return true;
    }
    let outcomes: Outcome[] = [];
    let position: Position = '';
    let phase: 'begin' | 'jobs' | 'commit' = 'begin';
    try {
      const transaction = await retryWhileBusy(() => this.#source.transaction('write'), this.#limits.busyTimeoutMs);
      try {
        await this.#requireAllowed(transaction);
        phase = 'jobs';
        outcomes =
          group.length === 1
            ? [{ ok: true, value: await (group[0] as Waiting).job(exclusive(transaction)) }]
            : await this.#runTogether(transaction, group);
        phase = 'commit';
        const { rows } = await transaction.execute(COUNTER);
        position = String(rows[0]?.position ?? 0);
        await transaction.commit();
      } finally {
        await transaction.close();
      }
    } catch (error) {
      const isDamage = databaseFault(error) === 'damaged';
      if (phase === 'jobs' && group.length > 1 && !isDamage) return false;
      const failure = this.#failure(error);
      for (const waiting of group) waiting.reject(failure);
      return true;
    }
    this.#requeue(group.slice(outcomes.length));
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.ok) group[index]?.resolve(outcome.value);
      else group[index]?.reject(this.#failure(outcome.error));
    }
    if (position !== this.#position) this.#listeners.announce(position);
    this.#position = position;
    return true;
  }

  async #requireAllowed(transaction: Statements): Promise<void> {
    const { version } = this.#limits;
    if (version === null) return;
    if ((await transaction.execute(allowed(version))).rows.length === 0) throw forbidden();
  }

  /**
   * @returns the outcomes of the jobs that fit into the time limit
   * @throws the error that aborted the transaction
   */
  async #runTogether(transaction: Statements, group: Waiting[]): Promise<Outcome[]> {
    const deadline = performance.now() + this.#limits.maxGroupMs;
    const outcomes: Outcome[] = [];
    for (const { job } of group) {
      if (outcomes.length > 0 && performance.now() >= deadline) break;
      // one round trip to a remote database
      await transaction.batch(outcomes.length === 0 ? [MARK] : [UNMARK, MARK]);
      try {
        outcomes.push({ ok: true, value: await job(exclusive(transaction)) });
      } catch (error) {
        if (databaseFault(error) === 'damaged') throw error;
        await transaction.execute(UNDO);
        outcomes.push({ ok: false, error });
      }
    }
    // Fails if a job has ended the transaction.
    await transaction.execute(UNMARK);
    return outcomes;
  }

  #failure(error: unknown): unknown {
    return this.#damage?.failure(error) ?? databaseFailure(error);
  }
}

/** As the only writer, this transaction reads nothing that can change, and the counter is exact. */
function exclusive(statements: Statements): WriteTransaction {
  return {
    execute: (statement) => statements.execute(statement),
    batch: (several) => statements.batch(several),
    position: async () => Number((await statements.execute(COUNTER)).rows[0]?.position ?? 0),
    moveTo: async (position) => {
      await statements.execute({ sql: MOVE, args: [position] });
    },
    fixPositions: () => {},
    touch: () => {},
    rely: () => {},
  };
}

const COUNTER = 'SELECT position FROM counter';
const MOVE = `INSERT INTO counter (id, position) VALUES (1, ?)
  ON CONFLICT (id) DO UPDATE SET position = excluded.position WHERE position <> excluded.position`;
