import type { InStatement } from '@libsql/client';
import { databaseErrorCode } from './database-error';
import { nextTurn, pause } from './next-turn';
import type { ResultRows } from './reader';
import {
  isRefusedWhole,
  type TransactionOutcome,
  type TransactionRequests,
  type WholeTransaction,
  wholeTransaction,
} from './transaction-requests';

/**
 * Takes the transactions of a process to a server that has one write lock and is far away. While one request is under way,
 * those that become ready wait, and go together in the next: they would only meet at the lock, and a refusal there costs a
 * round trip.
 *
 * Ordering: they go in the order in which they became ready, and are done in it, as far as they are done.
 * Failure: each has an outcome of its own, but for a request that dies: nobody knows then what became of its transactions.
 * A request whose answer is late is not waited for by those behind it.
 */
export interface TrainLimits {
  /** Most of one request; what is larger goes alone. */
  maxBytes: number;
  maxStatements: number;
  /** How long the next request waits for the answer to the one before. */
  lateMs: number;
  /** How long to keep trying while others hold the lock. */
  busyMs: number;
}

const LIMITS: TrainLimits = { maxBytes: 256 * 1024, maxStatements: 512, lateMs: 1_000, busyMs: 10_000 };

const FIRST_PAUSE_MS = 2;
const MOST_PAUSE_MS = 100;

interface Waiting {
  transaction: WholeTransaction;
  /** When it is given up, where others hold the lock. */
  until: number;
  settle(outcome: TransactionOutcome): void;
}

export class CommitTrain {
  readonly #requests: Pick<TransactionRequests, 'send'>;
  readonly #limits: TrainLimits;
  #waiting: Waiting[] = [];
  /** Requests that the next one waits for. */
  #ahead = 0;
  #isCalled = false;
  #pauseMs = 0;
  /** So many go one by one: they may be those of a request that died, of which one may be at fault. */
  #alone = 0;

  constructor(requests: Pick<TransactionRequests, 'send'>, limits: Partial<TrainLimits> = {}) {
    this.#requests = requests;
    this.#limits = { ...LIMITS, ...limits };
  }

  /** @throws LibsqlError of the first statement that is refused, and what the request throws */
  async run(statements: readonly InStatement[], end: WholeTransaction['end']): Promise<ResultRows[]> {
    const transaction = wholeTransaction(statements, end);
    const outcome = await new Promise<TransactionOutcome>((settle) => {
      this.#waiting.push({ transaction, until: performance.now() + this.#limits.busyMs, settle });
      this.#call();
    });
    if ('error' in outcome) throw outcome.error;
    return outcome.rows;
  }

  /** Those that become ready in the same turn go together. */
  #call(): void {
    if (this.#isCalled || this.#ahead > 0 || this.#waiting.length === 0) return;
    this.#isCalled = true;
    void nextTurn().then(() => {
      this.#isCalled = false;
      if (this.#ahead === 0) void this.#leave(this.#load());
    });
  }

  #load(): Waiting[] {
    let [count, bytes, statements] = [0, 0, 0];
    if (this.#alone > 0) {
      this.#alone -= 1;
      return this.#waiting.splice(0, 1);
    }
    for (const { transaction } of this.#waiting) {
      bytes += transaction.bytes;
      statements += transaction.statements.length;
      if (count > 0 && (bytes > this.#limits.maxBytes || statements > this.#limits.maxStatements)) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  async #leave(load: Waiting[]): Promise<void> {
    this.#ahead += 1;
    let isAhead = true;
    const letPass = () => {
      if (isAhead) this.#ahead -= 1;
      isAhead = false;
      this.#call();
    };
    const late = setTimeout(letPass, this.#limits.lateMs);
    const keptOut = await this.#deliver(load);
    this.#waiting.unshift(...keptOut);
    this.#pauseMs = keptOut.length === 0 ? 0 : Math.min(this.#pauseMs * 2 || FIRST_PAUSE_MS, MOST_PAUSE_MS);
    // jitter, so that two processes do not try in step
    if (keptOut.length > 0) await pause(this.#pauseMs * (0.5 + Math.random() / 2));
    clearTimeout(late);
    letPass();
  }

  /** @returns those that others have kept out, and that go again */
  async #deliver(load: Waiting[]): Promise<Waiting[]> {
    let outcomes: TransactionOutcome[];
    try {
      outcomes = await this.#requests.send(load.map(({ transaction }) => transaction));
    } catch (error) {
      if (load.length > 1 && isRefusedWhole(error)) {
        // One of them is at fault: it is found by halves, in order. Those that were done already know it by their marks.
        const half = load.length >> 1;
        const first = await this.#deliver(load.slice(0, half));
        return [...first, ...(await this.#deliver(load.slice(half)))];
      }
      if (load.length > 1) this.#alone = Math.max(this.#alone, load.length);
      outcomes = load.map(() => ({ error, hasBegun: true }));
    }
    const now = performance.now();
    return load.filter(({ until, settle }, at) => {
      const outcome = outcomes[at] as TransactionOutcome;
      const goesAgain = now < until && isKeptOut(outcome);
      if (!goesAgain) settle(outcome);
      return goesAgain;
    });
  }
}

function isKeptOut(outcome: TransactionOutcome): boolean {
  if (!('error' in outcome)) return false;
  const code = databaseErrorCode(outcome.error) ?? '';
  // one that took too long ends the request that it is in, for those behind it, too
  return code === 'SQLITE_BUSY' || (!outcome.hasBegun && code.startsWith('TRANSACTION_'));
}
