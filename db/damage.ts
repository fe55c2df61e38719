import { AppError } from '@interlude/protocol/errors';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { damaged, databaseErrorCode, databaseFailure, databaseFault, isReadFailure } from './database-error';
import type { Reader } from './reader';
import { pauseUnref } from './yield-to-loop';

/** Delays before each integrity check: a disk that recovers does so within seconds. */
const PAUSES_MS = [0, 1_000, 5_000, 30_000];

/**
 * Remembers that the database is damaged. Later successful reads don't prove a damaged file sound, so the mark stays until
 * the file is opened again.
 *
 * SQLite has the same code for a corrupt page and for a failed read (EIO). If the disk is the possible cause, this class
 * checks the whole file, and trusts it again if it is intact. Until then, the database refuses writes.
 */
export class Damage {
  readonly #name: string;
  readonly #isIntact: (() => Promise<boolean>) | null;
  readonly #pausesMs: readonly number[];
  #code: string | null = null;
  #checking: Promise<void> | null = null;
  #isClosed = false;

  /**
   * @param name of the database, for the log
   * @param isIntact checks the whole file on a new connection; null without a file
   */
  constructor(name: string, isIntact: (() => Promise<boolean>) | null = null, pausesMs = PAUSES_MS) {
    this.#name = name;
    this.#isIntact = isIntact;
    this.#pausesMs = pausesMs;
  }

  /** The first error code (`SQLITE_CORRUPT`, …); null while the database is sound. */
  get code(): string | null {
    return this.#code;
  }

  /** Starts no further checks. */
  close(): void {
    this.#isClosed = true;
  }

  /** Resolves once no check is running. */
  async idle(): Promise<void> {
    await this.#checking;
  }

  /** The error for writers; null while the database is sound. */
  refusal(cause?: unknown): AppError | null {
    if (this.#code === null) return null;
    return this.#checking === null ? damaged(cause) : inDoubt(cause);
  }

  /** Records an error like `record`, and returns the error for the caller. */
  failure(error: unknown): unknown {
    this.record(error);
    const isDamage = databaseFault(error) === 'damaged';
    return (isDamage ? this.refusal(error) : null) ?? databaseFailure(error);
  }

  /** Records an error from the database. Logs damage once. */
  record(error: unknown): void {
    if (this.#code !== null || databaseFault(error) !== 'damaged') return;
    this.#code = databaseErrorCode(error);
    if (this.#isIntact === null || !isReadFailure(error)) {
      this.#reportDamage();
      return;
    }
    this.#log('has a corrupt page, or its disk failed to read one: nothing is stored until the whole file is checked');
    this.#checking = this.#check(this.#isIntact).finally(() => {
      this.#checking = null;
    });
  }

  /** Never rejects. */
  async #check(isIntact: () => Promise<boolean>): Promise<void> {
    for (const pauseMs of this.#pausesMs) {
      await pauseUnref(pauseMs);
      if (this.#isClosed) return;
      if (!(await isIntact().catch(() => false))) continue;
      this.#code = null;
      this.#log('is intact: its disk had failed to read a page. Writing continues; check the disk');
      return;
    }
    this.#reportDamage();
  }

  #reportDamage(): void {
    this.#log(
      `is damaged (${this.#code}): nothing more is stored. Stop Interlude, move the file away together with the -wal and -shm files beside it, and restore a backup`,
    );
  }

  #log(what: string): void {
    serverLog('error', `the database ${this.#name} ${what}.`);
  }
}

function inDoubt(cause: unknown): AppError {
  const message =
    'A page of the database could not be read, and nothing is stored until the whole file is checked. Send this again in a moment.';
  return new AppError('unavailable', message, { cause, headers: { 'retry-after': '5' } });
}

/** A socket that was closed while idle fails only the first request sent through it. */
const DEAD_SOCKET = /^(ECONNRESET|EPIPE|UND_ERR_SOCKET|UNREACHABLE|HRANA_CLOSED_ERROR|HRANA_WEBSOCKET_ERROR)$/;

/**
 * Reports database failures as `unavailable`, and retries once after a dead socket. For reads only: a write that failed
 * this way may be committed.
 */
export function guardedReader(reader: Reader, damage: Damage): Reader {
  const guard = async <Result>(read: () => Promise<Result>): Promise<Result> => {
    try {
      return await read();
    } catch (error) {
      throw damage.failure(error);
    }
  };
  const retried = <Result>(read: () => Promise<Result>): Promise<Result> =>
    guard(() => read().catch(retryOnDeadSocket(read)));
  return {
    execute: (statement) => retried(() => reader.execute(statement)),
    batch: (statements, mode) => retried(() => reader.batch(statements, mode)),
    transaction: async (mode) => {
      let snapshot = await retried(() => reader.transaction(mode));
      let isStarted = false;
      // On a server, a snapshot starts with its first statement, so until that statement succeeds a new snapshot is
      // equivalent.
      const read = async <Result>(query: () => Promise<Result>): Promise<Result> => {
        if (isStarted) return await guard(query);
        isStarted = true;
        const restart = async () => {
          snapshot.close();
          snapshot = await reader.transaction(mode);
          return await query();
        };
        return await guard(() => query().catch(retryOnDeadSocket(restart)));
      };
      return {
        execute: (statement) => read(() => snapshot.execute(statement)),
        batch: (statements) => read(() => snapshot.batch(statements)),
        close: () => snapshot.close(),
      };
    },
  };
}

function retryOnDeadSocket<Result>(read: () => Promise<Result>): (error: unknown) => Promise<Result> {
  return (error) => {
    if (DEAD_SOCKET.test(databaseErrorCode(error) ?? '')) return read();
    throw error;
  };
}
