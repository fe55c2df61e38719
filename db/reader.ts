import { AppError } from '@interlude/protocol/errors';
import type { InStatement, ResultSet } from '@libsql/client';
import { Yielder } from './yield-to-loop';

/** Use RETURNING to count changed rows, because not every database reports a count. */
export type ResultRows = Pick<ResultSet, 'rows'>;

export interface Reader {
  execute(statement: InStatement): Promise<ResultRows>;
  /** A consistent read. */
  batch(statements: InStatement[], mode: 'read'): Promise<ResultRows[]>;
  /** A consistent series of reads that depend on each other. Must be closed. */
  transaction(mode: 'read'): Promise<Snapshot>;
}

export interface Snapshot {
  execute(statement: InStatement): Promise<ResultRows>;
  batch(statements: InStatement[]): Promise<ResultRows[]>;
  close(): void;
}

/** A batch, for drivers without one. */
export async function runInOrder(
  statements: readonly InStatement[],
  execute: (statement: InStatement) => Promise<ResultRows>,
): Promise<ResultRows[]> {
  const answers: ResultRows[] = [];
  for (const statement of statements) answers.push(await execute(statement));
  return answers;
}

interface ReadQueueLimits {
  concurrency: number;
  /** Maximum waiting reads, in total and per client. */
  maxWaiting: number;
  maxWaitingOfOne: number;
}

const LIMITS: ReadQueueLimits = { concurrency: 2, maxWaiting: 512, maxWaitingOfOne: 128 };

interface ReadOptions {
  /** Aborts when the result is no longer needed. */
  signal?: AbortSignal;
  /** True for a read that continues a started response: it may wait, but is never refused. */
  continues?: boolean;
}

/**
 * Queues heavy reads. Each read of a local database occupies a processor, and its result is built on the event loop. So
 * only a few run at once, and the queue yields to the event loop between them once 10 ms have passed.
 *
 * Ordering: clients take turns, and each client's reads run in order. A client that requests sixteen pages at once only
 * delays itself.
 * Failure: a full queue refuses (`unavailable`, with Retry-After). An aborted read passes its turn on.
 */
export class ReadQueue {
  readonly #limits: ReadQueueLimits;
  /** By client; the next in turn comes first. */
  readonly #lines = new Map<string, (() => void)[]>();
  readonly #yielder = new Yielder();
  #waiting = 0;
  #running = 0;

  constructor(limits: Partial<ReadQueueLimits> = {}) {
    this.#limits = { ...LIMITS, ...limits };
  }

  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Runs `read` in its turn.
   * @param client id of the sender's credential, never a value the sender chooses
   * @throws AppError `unavailable` if the queue is full; the signal's reason; errors of `read`
   */
  async run<T>(client: string, read: () => Promise<T>, { signal, continues = false }: ReadOptions = {}): Promise<T> {
    if (this.#running >= this.#limits.concurrency) await this.#turn(client, continues);
    else this.#running += 1;
    try {
      signal?.throwIfAborted();
      return await read();
    } finally {
      void this.#next();
    }
  }

  #turn(client: string, continues: boolean): Promise<void> {
    const line = this.#lines.get(client) ?? [];
    const isFull = this.#waiting >= this.#limits.maxWaiting || line.length >= this.#limits.maxWaitingOfOne;
    if (isFull && !continues) {
      const message = 'Too many reads are waiting. Try again in a second.';
      throw new AppError('unavailable', message, { headers: { 'retry-after': '1' } });
    }
    return new Promise((resolve) => {
      line.push(resolve);
      this.#lines.set(client, line);
      this.#waiting += 1;
    });
  }

  /** Gives the slot of a finished read to the next in line. */
  async #next(): Promise<void> {
    await this.#yielder.yieldIfDue();
    const [first] = this.#lines;
    if (first === undefined) {
      this.#running -= 1;
      return;
    }
    const [client, line] = first;
    this.#lines.delete(client);
    const begin = line.shift();
    if (line.length > 0) this.#lines.set(client, line);
    this.#waiting -= 1;
    begin?.();
  }
}
