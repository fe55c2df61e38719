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

/**
 * Takes the transactions of a process to a server that has one write lock and is far away. While one request is under way,
 * those that become ready wait, and go together in the next: they would only meet at the lock, and a refusal there costs a
 * round trip.
 *
 * Ordering: they go in the order in which they became ready, and are done in it, as far as they are done.
 * Failure: each has an outcome of its own, but for a request that dies: nobody knows then what became of its transactions.
 * A request whose answer is late is not waited for by those behind it.
 */
export interface BatcherLimits {
  /** Most of one request; what is larger goes alone. */
  maxBytes: number;
  maxStatements: number;
  /** How long the next request waits for the answer to the one before. */
  lateMs: number;
  /** How long to keep trying while others hold the lock. */
  busyMs: number;
}

const BATCHER_LIMITS: BatcherLimits = { maxBytes: 256 * 1024, maxStatements: 512, lateMs: 1_000, busyMs: 10_000 };

const FIRST_PAUSE_MS = 2;
const MOST_PAUSE_MS = 100;

interface Waiting {
  transaction: WholeTransaction;
  /** When it is given up, where others hold the lock. */
  until: number;
  settle(outcome: TransactionOutcome): void;
}

export class CommitBatcher {
  readonly #requests: Pick<TransactionRequests, 'send'>;
  readonly #limits: BatcherLimits;
  #waiting: Waiting[] = [];
  /** Requests that the next one waits for. */
  #ahead = 0;
  #isCalled = false;
  #pauseMs = 0;
  /** So many go one by one: they may be those of a request that died, of which one may be at fault. */
  #alone = 0;

  constructor(requests: Pick<TransactionRequests, 'send'>, limits: Partial<BatcherLimits> = {}) {
    this.#requests = requests;
    this.#limits = { ...BATCHER_LIMITS, ...limits };
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
    void yieldToLoop().then(() => {
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
      if (load.length > 1 && isRequestRejected(error)) {
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
      const goesAgain = now < until && isLockedOut(outcome);
      if (!goesAgain) settle(outcome);
      return goesAgain;
    });
  }
}

function isLockedOut(outcome: TransactionOutcome): boolean {
  if (!('error' in outcome)) return false;
  const code = databaseErrorCode(outcome.error) ?? '';
  // one that took too long ends the request that it is in, for those behind it, too
  return code === 'SQLITE_BUSY' || (!outcome.hasBegun && code.startsWith('TRANSACTION_'));
}

/** What is done in one go, and is then kept or taken back. */
export interface WholeTransaction {
  readonly statements: readonly { sql: string; args: InValue[] }[];
  readonly end: 'COMMIT' | 'ROLLBACK';
  /** About how much of a request it takes. */
  readonly bytes: number;
}

export type TransactionOutcome = { rows: ResultRows[] } | { error: unknown; hasBegun: boolean };

const BYTES_OF_A_NUMBER = 16;

function bytesOf(value: InValue): number {
  if (typeof value === 'string') return value.length;
  // it goes as base64
  if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) return Math.ceil((value.byteLength * 4) / 3);
  return BYTES_OF_A_NUMBER;
}

/** @throws RangeError, TypeError where an argument is nothing that can be sent: it would take all of its request with it */
export function wholeTransaction(statements: readonly InStatement[], end: WholeTransaction['end']): WholeTransaction {
  let bytes = 0;
  const whole = statements.map((statement) => {
    const { sql, args = [] } = typeof statement === 'string' ? { sql: statement } : statement;
    if (!Array.isArray(args)) throw new TypeError('arguments are given in order');
    new Stmt(sql).bindIndexes(args);
    bytes += sql.length;
    for (const value of args) bytes += bytesOf(value);
    return { sql, args };
  });
  return { statements: whole, end, bytes };
}

/**
 * Requests that hold whole transactions, one or several, which libSQL's client has no call for. Each ends within the
 * request that begins it, whatever becomes of it: nobody else waits for longer than the server works on it.
 *
 * Ordering: the transactions of a request run in its order, and each sees what those before it have committed. Others may
 * come in between.
 * Failure: one that is refused takes none of the others with it.
 */
export class TransactionRequests {
  readonly #client: HttpClient;

  constructor(url: string, authToken: string | undefined, fetch?: (request: Request) => Promise<Response>) {
    this.#client = openHttp(url, authToken, fetch);
    this.#client.intMode = 'number';
  }

  /**
   * @returns what became of each: the answers of its statements, or the LibsqlError of the first that was refused
   * @throws LibsqlError where the request itself is refused, and what `fetch` throws: nobody knows what became of them then
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

/** Whether it was the server that refused a request as a whole, such as for one statement that is none. */
function isRequestRejected(error: unknown): boolean {
  // one that is overloaded answers so, too, and says nothing of a statement
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
  // there is nothing to roll back where nothing has begun
  undo.run('ROLLBACK').catch(() => {});
  const [begun, ...steps] = await Promise.allSettled([begin, ...answers, ...commits]);
  const hasBegun = begun.status === 'fulfilled';
  const refusal = [begun, ...steps].find(({ status }) => status === 'rejected');
  if (refusal?.status === 'rejected') return { error: clientsError(refusal.reason), hasBegun };
  const rows: ResultRows[] = [];
  for (const step of steps) {
    if (step.status === 'rejected' || step.value === undefined)
      return { error: new LibsqlError('a statement was not run', 'TRANSACTION_CLOSED'), hasBegun };
    rows.push('rows' in step.value ? step.value : { rows: [] });
  }
  return { rows: rows.slice(0, statements.length) };
}

/** As many as the client's own cache has. */
const MOST_TEXTS = 30;

/** What is said more than once in a request is sent once. */
function storedTexts(stream: HttpStream, transactions: readonly WholeTransaction[]): Texts {
  const counts = new Map<string, number>();
  for (const { statements } of transactions)
    for (const { sql } of statements) counts.set(sql, (counts.get(sql) ?? 0) + 1);
  const saved = [...counts]
    .filter(([, count]) => count > 1)
    .map(([sql, count]) => ({ sql, bytes: sql.length * count }));
  const most = saved.sort((a, b) => b.bytes - a.bytes).slice(0, MOST_TEXTS);
  return new Map(most.map(({ sql }) => [sql, stream.storeSql(sql)]));
}

function clientsError(error: unknown): unknown {
  if (!(error instanceof ClientError)) return error;
  const code = error instanceof ResponseError ? (error.code ?? 'UNKNOWN') : 'HRANA_CLOSED_ERROR';
  return new LibsqlError(error.message, code, undefined, undefined, error);
}
