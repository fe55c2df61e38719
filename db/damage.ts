import type { AppError } from '@/lib/protocol/errors';
import { damaged, databaseErrorCode, databaseFault } from './database-error';

/**
 * Remembers that the database was found damaged. A file that lies once is not asked whether it still does: what it
 * answers afterwards proves nothing. Only opening it anew forgets.
 */
export class Damage {
  readonly #name: string;
  #code: string | null = null;

  /** @param name what to call the database in the log */
  constructor(name: string) {
    this.#name = name;
  }

  /** The code with which it was met first (`SQLITE_CORRUPT`, …); null while it is sound. */
  get code(): string | null {
    return this.#code;
  }

  /** What a writer is told; null while it is sound. */
  refusal(): AppError | null {
    return this.#code === null ? null : damaged();
  }

  /** Looks at an error from the database, and says in the log that it is damaged, once. */
  see(error: unknown): void {
    if (this.#code !== null || databaseFault(error) !== 'damaged') return;
    this.#code = databaseErrorCode(error);
    console.error(
      `[interlude] the database ${this.#name} is damaged (${this.#code}): nothing more is stored. Stop Interlude, move the file away together with the -wal and -shm files beside it, and put a copy in its place.`,
    );
  }
}
