import { AppError } from '@interlude/protocol/errors';
import { serverLog } from '@interlude/protocol/server-log.mjs';
import { databaseErrorCode } from './database-error';
import type { Lease } from './lease';

/**
 * Work on a database that is for one of its processes to do, and for that one to do once at a time.
 *
 * Failure: it is said once, until something works again. Whatever was not done is left for the next time.
 */
export class LeasedWork {
  readonly #lease: Lease;
  readonly #failure: string;
  readonly #onClosed: () => void;
  readonly #busy = new Set<string>();
  #isFailing = false;
  #isClosed = false;

  /**
   * @param lease says whether it is for this process to do
   * @param failure what to say of a failure, in front of it
   * @param onClosed called when the database turns out to be closed: nothing is left to work on
   */
  constructor(options: { lease: Lease; failure: string; onClosed: () => void }) {
    this.#lease = options.lease;
    this.#failure = options.failure;
    this.#onClosed = options.onClosed;
  }

  /**
   * Begins, unless the last of that kind has not ended.
   *
   * @param isDue whether there is anything to do
   */
  begin(kind: string, work: () => Promise<void>, isDue: () => Promise<boolean> = async () => true): void {
    if (this.#busy.has(kind) || this.#isClosed) return;
    this.#busy.add(kind);
    isDue()
      .then((due) => due && this.#lease.isHeld())
      .then((isOurs) => (isOurs ? work() : undefined))
      .then(() => {
        this.#isFailing = false;
      })
      .catch((error) => this.#failed(error))
      .finally(() => this.#busy.delete(kind));
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Nothing begins any more. */
  close(): void {
    this.#isClosed = true;
  }

  #failed(error: unknown): void {
    if (databaseErrorCode(error) === 'CLIENT_CLOSED') this.#onClosed();
    // The queue is full, or closing: whoever sent a record has been told so.
    else if (error instanceof AppError && error.code === 'unavailable') return;
    else if (!this.#isFailing) serverLog('error', this.#failure, { error });
    this.#isFailing = true;
  }
}
