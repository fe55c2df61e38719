import { type InStatement, type InValue, LibsqlError } from '@libsql/client';
import {
  BatchCond,
  ClientError,
  type HttpClient,
  type HttpStream,
  openHttp,
  ResponseError,
  Stmt,
} from '@libsql/hrana-client';
import { databaseErrorCode } from './database-error';
import type { ResultRows } from './reader';
import { pause, yieldToLoop } from './yield-to-loop';

export interface BatcherLimits {
  /** Limits of a request in bytes and statements. A larger transaction is sent alone. */
  maxBytes: number;
  maxStatements: number;
  /** Milliseconds a request waits for the response to the previous one. */
  lateMs: number;
  /** Milliseconds to retry while another transaction holds the lock. */
  busyMs: number;
}

const BATCHER_LIMITS: BatcherLimits = { maxBytes: 256 * 1024, maxStatements: 512, lateMs: 1_000, busyMs: 10_000 };

const FIRST_PAUSE_MS = 2;
const MAX_PAUSE_MS = 100;

interface Waiting {
  transaction: WholeTransaction;
  /** Deadline for getting the lock. */
  until: number;
  settle(outcome: TransactionOutcome): void;
}

/**
 * Batches the transactions of this process for a libSQL server. The server has one write lock and a long round trip, so
 * transactions that become ready while a request is in flight share the next request. Sent separately, they would
 * compete for the lock, and each refusal costs a round trip.
 *
 * Ordering: transactions are sent in the order they became ready, and are committed in that order.
 * Failure: each transaction has its own outcome. If a request fails, the outcome of its transactions is unknown. A late
 * response delays the next request by at most `lateMs`.
 */
export class CommitBatcher {
  readonly #requests: Pick<TransactionRequests, 'send'>;
  readonly #limits: BatcherLimits;
  #waiting: Waiting[] = [];
  /** Requests in flight that the next one waits for. */
  #inFlight = 0;
  #isScheduled = false;
  #pauseMs = 0;
  /** Transactions still to send one by one after a failed request, to find the one that fails. */
  #alone = 0;

  constructor(requests: Pick<TransactionRequests, 'send'>, limits: Partial<BatcherLimits> = {}) {
    this.#requests = requests;
    this.#limits = { ...BATCHER_LIMITS, ...limits };
  }

  /** @throws LibsqlError of the first refused statement, and errors of the request */
  async run(statements: readonly InStatement[], end: WholeTransaction['end']): Promise<ResultRows[]> {
    const transaction = wholeTransaction(statements, end);
    const outcome = await new Promise<TransactionOutcome>((settle) => {
      this.#waiting.push({ transaction, until: performance.now() + this.#limits.busyMs, settle });
      this.#schedule();
    });
    if ('error' in outcome) throw outcome.error;
    return outcome.rows;
  }

  /** Transactions that become ready in the same turn of the event loop share a request. */
  #schedule(): void {
    if (this.#isScheduled || this.#inFlight > 0 || this.#waiting.length === 0) return;
    this.#isScheduled = true;
    void yieldToLoop().then(() => {
      this.#isScheduled = false;
      if (this.#inFlight === 0) void this.#send(this.#nextBatch());
    });
  }

  #nextBatch(): Waiting[] {
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

  async #send(batch: Waiting[]): Promise<void> {
    this.#inFlight += 1;
    let isInFlight = true;
    const release = () => {
      if (isInFlight) this.#inFlight -= 1;
      isInFlight = false;
      this.#schedule();
    };
    const late = setTimeout(release, this.#limits.lateMs);
    const lockedOut = await this.#deliver(batch);
    this.#waiting.unshift(...lockedOut);
    this.#pauseMs = lockedOut.length === 0 ? 0 : Math.min(this.#pauseMs * 2 || FIRST_PAUSE_MS, MAX_PAUSE_MS);
    // Jitter keeps two processes from retrying in step.
    if (lockedOut.length > 0) await pause(this.#pauseMs * (0.5 + Math.random() / 2));
    clearTimeout(late);
    release();
  }

  /** @returns the transactions to retry, since others held the lock */
  async #deliver(batch: Waiting[]): Promise<Waiting[]> {
    let outcomes: TransactionOutcome[];
    try {
      outcomes = await this.#requests.send(batch.map(({ transaction }) => transaction));
    } catch (error) {
      if (batch.length > 1 && isRequestRejected(error)) {
        // Bisects, in order. The mark of a transaction shows if it was committed.
        const half = batch.length >> 1;
        const first = await this.#deliver(batch.slice(0, half));
        return [...first, ...(await this.#deliver(batch.slice(half)))];
      }
      if (batch.length > 1) this.#alone = Math.max(this.#alone, batch.length);
      outcomes = batch.map(() => ({ error, hasBegun: true }));
    }
    const now = performance.now();
    return batch.filter(({ until, settle }, index) => {
      const outcome = outcomes[index] as TransactionOutcome;
      const isRetried = now < until && isLockedOut(outcome);
      if (!isRetried) settle(outcome);
      return isRetried;
    });
  }
}

function isLockedOut(outcome: TransactionOutcome): boolean {
  if (!('error' in outcome)) return false;
  const code = databaseErrorCode(outcome.error) ?? '';
  // A transaction that took too long ends the whole request.
  return code === 'SQLITE_BUSY' || (!outcome.hasBegun && code.startsWith('TRANSACTION_'));
}

/** A transaction that fits in one request. */
export interface WholeTransaction {
  readonly statements: readonly { sql: string; args: InValue[] }[];
  readonly end: 'COMMIT' | 'ROLLBACK';
  /** Approximate bytes of a transaction in a request. */
  readonly bytes: number;
}

export type TransactionOutcome = { rows: ResultRows[] } | { error: unknown; hasBegun: boolean };

const BYTES_OF_A_NUMBER = 16;

function bytesOf(value: InValue): number {
  if (typeof value === 'string') return value.length;
  // base64
  if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) return Math.ceil((value.byteLength * 4) / 3);
  return BYTES_OF_A_NUMBER;
}

/** @throws RangeError, TypeError for an argument that can't be sent, which would fail the whole request */
export function wholeTransaction(statements: readonly InStatement[], end: WholeTransaction['end']): WholeTransaction {
  let bytes = 0;
  const whole = statements.map((statement) => {
    const { sql, args = [] } = typeof statement === 'string' ? { sql: statement } : statement;
    if (!Array.isArray(args)) throw new TypeError('named arguments are not supported');
    new Stmt(sql).bindIndexes(args);
    bytes += sql.length;
    for (const value of args) bytes += bytesOf(value);
    return { sql, args };
  });
  return { statements: whole, end, bytes };
}

/**
 * Sends several whole transactions in one request, which libSQL's client can't. A transaction ends within its request,
 * so it blocks other writers only while the server processes it.
 *
 * Ordering: the transactions of a request run in order, and each sees the commits before it. Transactions of other
 * clients may run in between.
 * Failure: a refused transaction does not affect the others in its request.
 */
export class TransactionRequests {
  readonly #client: HttpClient;

  constructor(url: string, authToken: string | undefined, fetch?: (request: Request) => Promise<Response>) {
    this.#client = openHttp(url, authToken, fetch);
    this.#client.intMode = 'number';
  }

  /**
   * @returns the results of each transaction, or the LibsqlError of its first refused statement
   * @throws LibsqlError if the server refuses the request, and errors of `fetch`, after which the outcome is unknown
   */
  async send(transactions: readonly WholeTransaction[]): Promise<TransactionOutcome[]> {
    try {
      const stream = this.#client.openStream();
      let done: Promise<void>;
      let outcomes: Promise<TransactionOutcome>[];
      try {
        const texts = storedTexts(stream, transactions);
        const batch = stream.batch(false);
        outcomes = transactions.map((transaction) => addTo(batch, transaction, texts));
        done = batch.execute();
      } finally {
        stream.closeGracefully();
      }
      await done;
      return await Promise.all(outcomes);
    } catch (error) {
      throw clientsError(error);
    }
  }

  close(): void {
    this.#client.close();
  }
}

/** The server refused a request as a whole, for example for invalid SQL. An overloaded server has another code. */
function isRequestRejected(error: unknown): boolean {
  return error instanceof LibsqlError && error.cause instanceof ResponseError && /^SQL/.test(error.code);
}

type Batch = ReturnType<HttpStream['batch']>;
type Texts = ReadonlyMap<string, ReturnType<HttpStream['storeSql']>>;

async function addTo(batch: Batch, { statements, end }: WholeTransaction, texts: Texts): Promise<TransactionOutcome> {
  let last = batch.step();
  const begin = last.run('BEGIN IMMEDIATE');
  let isOk = BatchCond.ok(last);
  const answers = statements.map(({ sql, args }) => {
    last = batch.step().condition(isOk);
    const answer = last.query(new Stmt(texts.get(sql) ?? sql).bindIndexes(args));
    isOk = BatchCond.ok(last);
    return answer;
  });
  const undo = batch.step();
  const commits = [];
  if (end === 'COMMIT') {
    last = batch.step().condition(isOk);
    commits.push(last.run('COMMIT'));
    undo.condition(BatchCond.not(BatchCond.ok(last)));
  }
  // Fails if the transaction did not begin.
  undo.run('ROLLBACK').catch(() => {});
  const [begun, ...steps] = await Promise.allSettled([begin, ...answers, ...commits]);
  const hasBegun = begun.status === 'fulfilled';
  const refusal = [begun, ...steps].find(({ status }) => status === 'rejected');
  if (refusal?.status === 'rejected') return { error: clientsError(refusal.reason), hasBegun };
  const rows: ResultRows[] = [];
  for (const step of steps) {
    if (step.status === 'rejected' || step.value === undefined)
      return { error: new LibsqlError('the statement was not run', 'TRANSACTION_CLOSED'), hasBegun };
    rows.push('rows' in step.value ? step.value : { rows: [] });
  }
  return { rows: rows.slice(0, statements.length) };
}

/** Same size as the cache of libSQL's client. */
const MAX_TEXTS = 30;

/** Sends repeated SQL only once. */
function storedTexts(stream: HttpStream, transactions: readonly WholeTransaction[]): Texts {
  const counts = new Map<string, number>();
  for (const { statements } of transactions)
    for (const { sql } of statements) counts.set(sql, (counts.get(sql) ?? 0) + 1);
  const saved = [...counts]
    .filter(([, count]) => count > 1)
    .map(([sql, count]) => ({ sql, bytes: sql.length * count }));
  const most = saved.sort((a, b) => b.bytes - a.bytes).slice(0, MAX_TEXTS);
  return new Map(most.map(({ sql }) => [sql, stream.storeSql(sql)]));
}

function clientsError(error: unknown): unknown {
  if (!(error instanceof ClientError)) return error;
  const code = error instanceof ResponseError ? (error.code ?? 'UNKNOWN') : 'HRANA_CLOSED_ERROR';
  return new LibsqlError(error.message, code, undefined, undefined, error);
}
