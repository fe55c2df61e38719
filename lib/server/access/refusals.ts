import { AppError } from '@interlude/protocol/errors';
import { stringifyWellFormed } from '@interlude/protocol/json';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';
import type { Database } from '@/db/client';
import { refusals } from '@/db/schema';
import { RowWriter, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { type Act, addEntry, entryOf } from './audit-entry';
import type { ServerContext } from './server-context';

/** For how long what is refused again is counted before the audit tells of it. */
const REFUSAL_WINDOW_MS = 10 * 60_000;
/** Of what was asked for, that may be anything: ids and paths that lead nowhere. */
const MAX_TARGET = 1_000;
const MOST_AT_ONCE = 100;
/** What nobody was refused: the request made no sense, or the server could not say. */
const NO_RESULT: readonly string[] = ['malformed', 'invalid_argument', 'too_large', 'unavailable', 'internal'];

const ROW = shapeOf(refusals);
const REFUSALS = new RowWriter(refusals);

/**
 * Tells the audit what was refused, in so many words for once and by their number for more: whoever may sign in could
 * fill the database otherwise.
 *
 * Ordering: the first refusal of an action by a credential, for that reason, is an entry at once. Others are counted, and
 * one entry tells of them ten minutes later, and so on every ten minutes until there were none for as long.
 * Failure: the count is in the database, for all processes on it. What a process leaves untold when it ends or freezes is
 * told by the next that notes a refusal, that starts, or that is asked to do what is due.
 */
export class Refusals {
  readonly #database: Database;
  readonly #now: () => number;
  readonly #windowMs: number;
  readonly #lasts: boolean;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(
    { database, now, kind = 'shared' }: Pick<ServerContext, 'database' | 'now' | 'kind'>,
    windowMs = REFUSAL_WINDOW_MS,
  ) {
    this.#lasts = kind === 'shared';
    this.#database = database;
    this.#now = now;
    this.#windowMs = windowMs;
  }

  /** Notes what somebody was refused. Never rejects: the refusal stands without it. */
  async note(act: Act, error: unknown): Promise<void> {
    if (!(error instanceof AppError) || NO_RESULT.includes(error.code)) return;
    const entry = entryOf(bounded(act), error.code, this.#now());
    const { credentialId, action, result, at } = entry;
    const isCounted = await this.#database.writes
      .run(async (transaction) => {
        transaction.touch('refusals');
        await this.#tell(transaction, at);
        const { rows } = await transaction.execute({
          sql: `UPDATE refusals SET times = times + 1, entry = ?
            WHERE credential_id = ? AND action = ? AND result = ? RETURNING times`,
          args: [stringifyWellFormed(entry), credentialId, action, result],
        });
        if (rows.length > 0) return true;
        const row = { credentialId, action, result, dueAt: at + this.#windowMs, times: 0, entry };
        await transaction.execute(REFUSALS.one(row));
        await addEntry(transaction, entry);
        return false;
      })
      .catch(() => false);
    if (isCounted) this.#tellLater();
  }

  /** From now on what is counted is told in time, also what others have left. */
  keep(): void {
    void this.tellDue();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  /** Tells what is due. Never rejects. */
  async tellDue(): Promise<void> {
    const { reader, writes } = this.#database;
    try {
      const isDue = async () =>
        (await reader.execute({ sql: `SELECT 1 FROM refusals WHERE ${DUE} LIMIT 1`, args: this.#due(this.#now()) }))
          .rows.length > 0;
      while (!this.#isClosed && (await isDue()))
        await writes.run((transaction) => this.#tell(transaction, this.#now()), { keys: ['refusals'] });
      const { rows } = await reader.execute('SELECT 1 FROM refusals WHERE times > 0 LIMIT 1');
      if (rows.length > 0) this.#tellLater();
    } catch {
      this.#tellLater();
    }
  }

  #tellLater(): void {
    if (this.#timer !== undefined || this.#isClosed || !this.#lasts) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.tellDue();
    }, this.#windowMs);
    if (typeof this.#timer === 'object') this.#timer.unref?.();
  }

  async #tell(transaction: WriteTransaction, now: number): Promise<void> {
    const result = await transaction.execute({
      sql: `SELECT ${ROW.columns()} FROM refusals WHERE ${DUE} ORDER BY due_at LIMIT ${MOST_AT_ONCE}`,
      args: this.#due(now),
    });
    for (const { credentialId, action, result: code, times, entry } of ROW.all(result)) {
      const args = [credentialId, action, code];
      const which = 'WHERE credential_id = ? AND action = ? AND result = ?';
      if (times === 0) {
        await transaction.execute({ sql: `DELETE FROM refusals ${which}`, args });
        continue;
      }
      await addEntry(transaction, { ...entry, times });
      const sql = `UPDATE refusals SET times = 0, due_at = ? ${which}`;
      await transaction.execute({ sql, args: [now + this.#windowMs, ...args] });
    }
  }

  #due(now: number): number[] {
    return [now, now + this.#windowMs];
  }
}

/** Also what is due later than any window ends: the clock was set back. */
const DUE = '(due_at <= ? OR due_at > ?)';

function bounded(act: Act): Act {
  const id = (text: string | null) => (text === null ? null : truncateText(text, MAX_ID_LENGTH));
  return {
    ...act,
    agentId: id(act.agentId),
    sessionId: id(act.sessionId),
    target: truncateText(act.target, MAX_TARGET),
  };
}
