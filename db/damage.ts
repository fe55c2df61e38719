import { AppError } from '@interlude/protocol/errors';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { damaged, databaseErrorCode, databaseFailure, databaseFault, isReadFailure } from './database-error';
import type { Reader } from './reader';
import { pauseUnref } from './yield-to-loop';

/** The wait before each check whether the database is whole after all: a disk that recovers does so in seconds. */
const PAUSES_MS = [0, 1_000, 5_000, 30_000];

/**
 * Remembers that the database was found damaged. Whatever a damaged file answers afterwards proves nothing, so the mark
 * stays until the file is opened anew.
 *
 * But SQLite has the same code for a bad page and for one that the disk failed to read (EIO). When it may have been the
 * disk, the whole file is checked, and trusted again if all of it is sound. Until then nothing is stored.
 */
export class Damage {
  readonly #name: string;
  readonly #isWhole: (() => Promise<boolean>) | null;
  readonly #pausesMs: readonly number[];
  #code: string | null = null;
  #looking: Promise<void> | null = null;
  #isClosed = false;

  /**
   * @param name what to call the database in the log
   * @param isWhole checks the whole file, on a connection of its own; null if there is no file
   */
  constructor(name: string, isWhole: (() => Promise<boolean>) | null = null, pausesMs = PAUSES_MS) {
    this.#name = name;
    this.#isWhole = isWhole;
    this.#pausesMs = pausesMs;
  }

  /** The first error code seen (`SQLITE_CORRUPT`, …); null while the database is sound. */
  get code(): string | null {
    return this.#code;
  }

  /** Starts no further check. */
  close(): void {
    this.#isClosed = true;
  }

  /** Resolves once no check is running. */
  async idle(): Promise<void> {
    await this.#looking;
  }

  /** What a writer is told; null while it is sound. */
  refusal(cause?: unknown): AppError | null {
    if (this.#code === null) return null;
    return this.#looking === null ? damaged(cause) : inDoubt(cause);
  }

  /** The error for a caller whose statement failed. Notes the failure as `see` does. */
  failure(error: unknown): unknown {
    this.see(error);
    const isDamage = databaseFault(error) === 'damaged';
    return (isDamage ? this.refusal(error) : null) ?? databaseFailure(error);
  }

  /** Looks at an error from the database, and says in the log that it is damaged, once. */
  see(error: unknown): void {
    if (this.#code !== null || databaseFault(error) !== 'damaged') return;
    this.#code = databaseErrorCode(error);
    if (this.#isWhole === null || !isReadFailure(error)) {
      this.#condemn();
      return;
    }
    this.#say(
      'has a page that is wrong, or that its disk failed to read: nothing is stored until all of it is looked through',
    );
    this.#looking = this.#look(this.#isWhole).finally(() => {
      this.#looking = null;
    });
  }

  /** Never rejects. */
  async #look(isWhole: () => Promise<boolean>): Promise<void> {
    for (const pauseMs of this.#pausesMs) {
      await pauseUnref(pauseMs);
      if (this.#isClosed) return;
      if (!(await isWhole().catch(() => false))) continue;
      this.#code = null;
      this.#say('is whole: its disk had failed to read a page of it. It is written to again; look after the disk');
      return;
    }
    this.#condemn();
  }

  #condemn(): void {
    const what = `is damaged (${this.#code}): nothing more is stored`;
    const next =
      'Stop Interlude, move the file away together with the -wal and -shm files beside it, and put a copy in its place';
    this.#say(`${what}. ${next}`);
  }

  #say(what: string): void {
    serverLog('error', `the database ${this.#name} ${what}.`);
  }
}

function inDoubt(cause: unknown): AppError {
  const message =
    'A page of the database could not be read, and nothing is stored until all of it is looked through. Send this again in a moment.';
  return new AppError('unavailable', message, { cause, headers: { 'retry-after': '5' } });
}

/** A socket that was closed while idle fails only the first request sent through it. */
const DEAD_SOCKET = /^(ECONNRESET|EPIPE|UND_ERR_SOCKET|UNREACHABLE|HRANA_CLOSED_ERROR|HRANA_WEBSOCKET_ERROR)$/;

/**
 * A reader whose database failures arrive as `unavailable`, and that repeats once what failed on a dead socket. For
 * reads only: nobody knows whether a write that failed in this way has happened.
 */
export function guardedReader(reader: Reader, damage: Damage): Reader {
  const guard = async <Result>(read: () => Promise<Result>): Promise<Result> => {
    try {
      return await read();
    } catch (error) {
      throw damage.failure(error);
    }
  };
  const again = <Result>(read: () => Promise<Result>): Promise<Result> => guard(() => read().catch(onceMore(read)));
  return {
    execute: (statement) => again(() => reader.execute(statement)),
    batch: (statements, mode) => again(() => reader.batch(statements, mode)),
    transaction: async (mode) => {
      let snapshot = await again(() => reader.transaction(mode));
      let isBegun = false;
      // A snapshot at a server begins with its first statement: until that is answered, another is as good.
      const read = async <Result>(ask: () => Promise<Result>): Promise<Result> => {
        if (isBegun) return await guard(ask);
        isBegun = true;
        const anew = async () => {
          snapshot.close();
          snapshot = await reader.transaction(mode);
          return await ask();
        };
        return await guard(() => ask().catch(onceMore(anew)));
      };
      return {
        execute: (statement) => read(() => snapshot.execute(statement)),
        batch: (statements) => read(() => snapshot.batch(statements)),
        close: () => snapshot.close(),
      };
    },
  };
}

function onceMore<Result>(read: () => Promise<Result>): (error: unknown) => Promise<Result> {
  return (error) => {
    if (DEAD_SOCKET.test(databaseErrorCode(error) ?? '')) return read();
    throw error;
  };
}
