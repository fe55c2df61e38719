import { AppError } from '@interlude/protocol/errors';
import type { InStatement, ResultSet } from '@libsql/client';
import { Yielder } from './yield-to-loop';

/** What a statement answers. How many rows it changed is asked with `RETURNING`: not every database reports it in another way. */
export type ResultRows = Pick<ResultSet, 'rows'>;

/** Reads, each on its own or several of one moment. */
export interface Reader {
  execute(statement: InStatement): Promise<ResultRows>;
  /** All of them see one moment. */
  batch(statements: InStatement[], mode: 'read'): Promise<ResultRows[]>;
  /** For reads of one moment of which each depends on the one before. Must be closed. */
  transaction(mode: 'read'): Promise<Snapshot>;
}

export interface Snapshot {
  execute(statement: InStatement): Promise<ResultRows>;
  batch(statements: InStatement[]): Promise<ResultRows[]>;
  close(): void;
}

/** One after the other: what a batch is, where nothing takes several at once. */
export async function runInOrder(
  statements: readonly InStatement[],
  execute: (statement: InStatement) => Promise<ResultRows>,
): Promise<ResultRows[]> {
  const answers: ResultRows[] = [];
  for (const statement of statements) answers.push(await execute(statement));
  return answers;
}

/**
 * The line in which heavy reads wait. Each running read of a local database keeps a processor busy, and its answer is
 * built on the event loop. So only a few run at once, and the loop gets a turn between two of them once 10 ms have passed.
 *
 * Ordering: clients take turns, and each client's reads run in the order they came. A client that asks for sixteen
 * pages at once waits for its own sixteen, and nobody else does.
 * Failure: a full line refuses (`unavailable`, with Retry-After). What a read throws goes to its caller. A caller that
 * has gone gives its turn to the next.
 */
interface ReadQueueLimits {
  /** Most reads that are under way. */
  atOnce: number;
  /** Most that wait, of all clients and of one. */
  maxWaiting: number;
  maxWaitingOfOne: number;
}

const LIMITS: ReadQueueLimits = { atOnce: 2, maxWaiting: 512, maxWaitingOfOne: 128 };

interface ReadOptions {
  /** Aborted when nobody waits for the answer any more. */
  signal?: AbortSignal;
  /** Part of an answer that has begun: it waits, but is not refused. */
  continues?: boolean;
}

export class ReadQueue {
  readonly #limits: ReadQueueLimits;
  /** By client, next turn first. */
  readonly #lines = new Map<string, (() => void)[]>();
  readonly #yielder = new Yielder();
  #waiting = 0;
  #running = 0;

  constructor(limits: Partial<ReadQueueLimits> = {}) {
    this.#limits = { ...LIMITS, ...limits };
  }

  /** How many reads wait for their turn. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Runs `read` when its turn has come.
   * @param client the id of the sender's credential; never anything that a sender chooses
   * @throws AppError `unavailable` when the line is full, the signal's reason, and what `read` throws
   */
  async run<T>(client: string, read: () => Promise<T>, { signal, continues = false }: ReadOptions = {}): Promise<T> {
    if (this.#running >= this.#limits.atOnce) await this.#turn(client, continues);
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
      const message = 'Too many reads are waiting. Ask again in a second.';
      throw new AppError('unavailable', message, { headers: { 'retry-after': '1' } });
    }
    return new Promise((resolve) => {
      line.push(resolve);
      this.#lines.set(client, line);
      this.#waiting += 1;
    });
  }

  /** A read is over: its place goes to the next in line. */
  async #next(): Promise<void> {
    await this.#yielder.rest();
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
