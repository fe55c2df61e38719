import { type InArgs, type InStatement, type InValue, LibsqlError, type Row } from '@libsql/client';
import LoopSqlite from 'libsql';
import ThreadSqlite from 'libsql/promise';
import type { ResultRows } from './reader';

/**
 * Where SQLite works. On the `loop` a small statement is answered in microseconds, and everybody waits for a large one.
 * A `thread` of libSQL's own keeps nobody waiting, but there and back takes as long as several small statements, and on
 * a busy loop each way back has to wait for its turn.
 */
export type Place = 'loop' | 'thread';

/**
 * One connection to a database file, for one user at a time. Statements stay prepared: the same few dozen come again and
 * again.
 *
 * Failure: throws a LibsqlError with SQLite's code, as the client for servers does.
 */
export class LocalConnection {
  readonly #sqlite: Record<Place, Sqlite>;
  readonly #prepared: Record<Place, Map<string, SqliteStatement>> = { loop: new Map(), thread: new Map() };

  /** @param busyTimeoutMs how long SQLite itself waits for a lock of another process */
  constructor(path: string, busyTimeoutMs: number) {
    const loop = told(() => new LoopSqlite(path, { timeout: busyTimeoutMs })) as unknown as Sqlite;
    loop.defaultSafeIntegers(true);
    // libSQL has a class for either way to wait; this makes both of one native connection
    const thread = Object.create(ThreadSqlite.prototype, { db: { value: loop.db } });
    this.#sqlite = { loop, thread };
  }

  /**
   * Runs SQL that takes no arguments and answers nothing. Its statements are gone when it returns, which `BEGIN` needs: one
   * that stays prepared after it met a lock counts as under way, and no transaction of the connection can commit.
   */
  async run(sql: string, place: Place): Promise<void> {
    try {
      await this.#sqlite[place].exec(sql);
    } catch (error) {
      rethrow(error);
    }
  }

  /** @throws RangeError for an integer that JavaScript can't hold */
  async execute(statement: InStatement, place: Place): Promise<ResultRows> {
    const { sql, args } = typeof statement === 'string' ? { sql: statement, args: [] } : statement;
    const known = this.#prepared[place];
    try {
      const prepared = known.get(sql) ?? (await this.#prepare(sql, place));
      // what fails must not be met again as it was left
      known.delete(sql);
      const called = prepared.all(toArguments(args ?? []));
      const rows = place === 'loop' ? (called as Row[]) : await called;
      for (const row of rows) checkIntegers(row);
      known.set(sql, prepared);
      return { rows };
    } catch (error) {
      return rethrow(error);
    }
  }

  get isInTransaction(): boolean {
    return this.#sqlite.loop.inTransaction;
  }

  close(): void {
    for (const known of Object.values(this.#prepared)) known.clear();
    this.#sqlite.loop.close();
  }

  /** What it answers is never remembered with it: another process may change the tables. */
  async #prepare(sql: string, place: Place): Promise<SqliteStatement> {
    const known = this.#prepared[place];
    // the one that was not used for longest
    const [oldest] = known.keys();
    if (known.size >= MAX_PREPARED && oldest !== undefined) known.delete(oldest);
    return this.#sqlite[place].prepare(sql);
  }
}

/** More than there are in the code: what is made up at run time must not push those out one after the other for ever. */
const MAX_PREPARED = 256;

// Each statement under way keeps one of these threads. Read when libSQL starts them, at the first statement of the process.
process.env.TOKIO_WORKER_THREADS ??= '16';

/** What is used of libSQL's classes, whose own types say `any`. Those that work on threads answer with promises. */
interface Sqlite {
  readonly db: unknown;
  readonly inTransaction: boolean;
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement | Promise<SqliteStatement>;
  defaultSafeIntegers(on: boolean): unknown;
  close(): void;
}

interface SqliteStatement {
  all(args: InArgs): Row[] | Promise<Row[]>;
}

/** Integers come as bigints, which only a few of them need to be. */
function checkIntegers(row: Row): void {
  for (const name in row) {
    const value = row[name];
    if (typeof value !== 'bigint') continue;
    const number = Number(value);
    if (!Number.isSafeInteger(number)) throw new RangeError(`The integer ${value} is more than JavaScript can hold`);
    row[name] = number;
  }
}

function toArguments(args: InArgs): InArgs {
  if (Array.isArray(args)) return args.map(toArgument);
  return Object.fromEntries(Object.entries(args).map(([name, value]) => [name, toArgument(value)]));
}

/** libSQL ends the process at a boolean. */
function toArgument(value: InValue): InValue {
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value === 'number' && !Number.isFinite(value)) throw new RangeError(`${value} is no value for a database`);
  if (value === undefined) throw new TypeError('undefined is no value for a database');
  return value;
}

function told<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    return rethrow(error);
  }
}

/** libSQL's own error has the extended code (`SQLITE_IOERR_FSYNC`); `code` is the plain one everywhere here. */
function rethrow(error: unknown): never {
  const { code, rawCode, message } = error as { code?: unknown; rawCode?: number; message: string };
  if (error instanceof LibsqlError || typeof code !== 'string' || !code.startsWith('SQLITE_')) throw error;
  const [plain = code] = /^SQLITE_[A-Z]+/.exec(code) ?? [];
  throw new LibsqlError(message, plain, code, rawCode, error as Error);
}
