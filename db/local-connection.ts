import { type InArgs, type InStatement, type InValue, LibsqlError, type Row } from '@libsql/client';
import LoopSqlite from 'libsql';
import ThreadSqlite from 'libsql/promise';
import type { ResultRows } from './reader';
import { Yielder } from './yield-to-loop';

/**
 * The place where SQLite runs. On the `loop` a small statement takes microseconds, but a large one blocks everything.
 * On a libSQL `thread` a statement runs up to its first row; for a write, sort or aggregate that is all of the work.
 * The loop reads the remaining rows, a hundred at a time, yielding in between. A round trip to a thread takes as long
 * as several small statements, plus the wait for a busy event loop.
 */
export type Place = 'loop' | 'thread';

/**
 * A connection to a database file, for one user at a time. Statements stay prepared, since the same few dozen repeat.
 *
 * Failure: throws a LibsqlError with SQLite's code, like the client for servers. SQLite may treat a failed statement as
 * running until it is garbage-collected, which keeps its snapshot open: see `isSound`.
 */
export class LocalConnection {
  readonly #sqlite: Record<Place, Sqlite>;
  readonly #prepared: Record<Place, Map<string, Prepared>> = { loop: new Map(), thread: new Map() };
  #isSound = true;
  #isClosed = false;

  /** @param busyTimeoutMs how long SQLite itself waits for another process's lock */
  constructor(path: string, busyTimeoutMs: number) {
    const loop = open(path, busyTimeoutMs);
    loop.defaultSafeIntegers(true);
    // libSQL has one class for the loop and one for threads. This wraps one native connection in both.
    const thread = Object.create(ThreadSqlite.prototype, { db: { value: loop.db } });
    this.#sqlite = { loop, thread };
  }

  /**
   * Runs SQL without arguments or results, and finalizes its statements before returning. `BEGIN` needs that: a
   * prepared `BEGIN` that met a lock would count as running, and the connection could not commit any transaction.
   */
  async run(sql: string, place: Place): Promise<void> {
    try {
      await this.#sqlite[place].exec(sql);
    } catch (error) {
      throw withPlainCode(error);
    }
  }

  /** @throws RangeError for an integer too large for JavaScript */
  async execute(statement: InStatement, place: Place): Promise<ResultRows> {
    const { sql, args = [] } = typeof statement === 'string' ? { sql: statement } : statement;
    const values = toArguments(args);
    const known = this.#prepared[place];
    try {
      const prepared = await this.#prepare(sql, values, place);
      const rows = place === 'loop' ? (prepared.all(values) as Row[]) : await drain(await prepared.iterate(values));
      for (const row of rows) checkIntegers(row);
      // A prepared statement keeps its last arguments in memory.
      if (sizeOf(values) <= MAX_KEPT_LENGTH) known.set(sql, { statement: prepared, argumentCount: countOf(values) });
      return { rows };
    } catch (error) {
      this.#isSound = false;
      throw withPlainCode(error);
    }
  }

  /** True if every statement so far has ended. If not, readers move to another connection. */
  get isSound(): boolean {
    return this.#isSound;
  }

  get isInTransaction(): boolean {
    return !this.#isClosed && this.#sqlite.loop.inTransaction;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const known of Object.values(this.#prepared)) known.clear();
    this.#sqlite.loop.close();
  }

  /** Removes the statement from the cache: a failed statement is not reset, so it must not be reused. */
  async #prepare(sql: string, values: InArgs, place: Place): Promise<SqliteStatement> {
    const known = this.#prepared[place];
    const found = known.get(sql);
    known.delete(sql);
    // With fewer arguments the statement would keep some of the previous ones.
    if (found?.argumentCount === countOf(values)) return found.statement;
    const [leastRecentlyUsed] = known.keys();
    if (known.size >= MAX_PREPARED && leastRecentlyUsed !== undefined) known.delete(leastRecentlyUsed);
    return this.#sqlite[place].prepare(sql);
  }
}

/** More than the number of fixed statements in the code. Readers' filters build further ones. */
const MAX_PREPARED = 128;
/** A statement with longer text arguments, in UTF-16 units, is not kept. */
const MAX_KEPT_LENGTH = 64 * 1024;

// A running statement occupies a thread. libSQL reads this at the first statement of the process.
process.env.TOKIO_WORKER_THREADS ||= '16';

interface Prepared {
  statement: SqliteStatement;
  argumentCount: number;
}

/**
 * The part of libSQL's classes that this file uses; libSQL types them as `any`. The class for threads returns promises.
 */
interface Sqlite {
  readonly db: unknown;
  readonly inTransaction: boolean;
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement | Promise<SqliteStatement>;
  defaultSafeIntegers(on: boolean): unknown;
  close(): void;
}

interface SqliteStatement {
  all(args: InArgs): unknown;
  iterate(args: InArgs): Iterable<Row> | Promise<Iterable<Row>>;
}

function open(path: string, busyTimeoutMs: number): Sqlite {
  try {
    return new LoopSqlite(path, { timeout: busyTimeoutMs }) as unknown as Sqlite;
  } catch (error) {
    // libSQL sets no code for this error.
    throw new LibsqlError('The file can’t be opened', 'SQLITE_CANTOPEN', undefined, undefined, error as Error);
  }
}

async function drain(steps: Iterable<Row>): Promise<Row[]> {
  const rows: Row[] = [];
  await new Yielder().each(steps, (row) => void rows.push(row));
  return rows;
}

/** Converts integers, which arrive as bigints, to numbers. */
function checkIntegers(row: Row): void {
  for (const name in row) {
    const value = row[name];
    if (typeof value !== 'bigint') continue;
    const number = Number(value);
    if (!Number.isSafeInteger(number))
      throw new RangeError(`The integer ${value} is beyond JavaScript’s safe integers`);
    row[name] = number;
  }
}

function toArguments(args: InArgs): InArgs {
  if (Array.isArray(args)) return args.map(toArgument);
  return Object.fromEntries(Object.entries(args).map(([name, value]) => [name, toArgument(value)]));
}

/** A boolean would crash libSQL. */
function toArgument(value: InValue): InValue {
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value === 'number' && !Number.isFinite(value))
    throw new RangeError(`${value} can’t be stored in a database`);
  if (value === undefined) throw new TypeError('undefined can’t be stored in a database');
  return value;
}

function countOf(args: InArgs): number {
  return Array.isArray(args) ? args.length : Object.keys(args).length;
}

function sizeOf(args: InArgs): number {
  return Object.values(args).reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 0), 0);
}

/** libSQL reports SQLite's extended code, or its own. Callers get SQLite's primary code. */
function withPlainCode(error: unknown): unknown {
  const { code, rawCode, message } = error as { code?: unknown; rawCode?: unknown; message: string };
  if (typeof code !== 'string' || typeof rawCode !== 'number') return error;
  const plain = PLAIN_CODES[rawCode & 0xff];
  return new LibsqlError(message, plain ? `SQLITE_${plain}` : code, code, rawCode, error as Error);
}

/** Indexed by number; 0 is no error. @see https://sqlite.org/rescode.html */
const PLAIN_CODES = (
  ' ERROR INTERNAL PERM ABORT BUSY LOCKED NOMEM READONLY INTERRUPT IOERR CORRUPT NOTFOUND FULL CANTOPEN PROTOCOL ' +
  'EMPTY SCHEMA TOOBIG CONSTRAINT MISMATCH MISUSE NOLFS AUTH FORMAT RANGE NOTADB'
).split(' ');
