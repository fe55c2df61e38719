import { AppError } from '@interlude/protocol/errors';
import { stringifyWellFormed } from '@interlude/protocol/json';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';
import type { Database } from '@/db/client';
import { refusals } from '@/db/schema';
import { RowWriter, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { unref } from '@/db/yield-to-loop';
import { type AuditedAction, appendAuditEntry, toAuditEntry } from './audit';
import type { ServerContext } from './request-context';

/** Time for which repeated refusals are counted before the audit records them. */
const REFUSAL_WINDOW_MS = 10 * 60_000;
/** Maximum length of a target. Targets are ids and paths, which the sender chooses. */
const MAX_TARGET = 1_000;
const MAX_PER_FLUSH = 100;
/** Codes that don't concern access: invalid requests and server failures. */
const NOT_REFUSALS: readonly string[] = ['malformed', 'invalid_argument', 'too_large', 'unavailable', 'internal'];

const ROW = shapeOf(refusals);
const REFUSALS = new RowWriter(refusals);

/**
 * Records refusals in the audit, the first in full and repeats as a count, so that no one with a sign-in can fill the
 * database.
 *
 * Ordering: the first refusal per credential, action and code gets an entry immediately. Repeats are counted and
 * recorded every ten minutes, until ten minutes pass without one.
 * Failure: counts are stored in the database. If a process ends before it records them, the next process that counts a
 * refusal, starts, or runs due work records them.
 */
export class RefusalCounter {
  readonly #database: Database;
  readonly #now: () => number;
  readonly #windowMs: number;
  readonly #isLongLived: boolean;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(
    { database, now, kind = 'shared' }: Pick<ServerContext, 'database' | 'now' | 'kind'>,
    windowMs = REFUSAL_WINDOW_MS,
  ) {
    this.#isLongLived = kind === 'shared';
    this.#database = database;
    this.#now = now;
    this.#windowMs = windowMs;
  }

  /** Records a refusal. Never rejects, because a refusal takes effect even without its entry. */
  async record(act: AuditedAction, error: unknown): Promise<void> {
    if (!(error instanceof AppError) || NOT_REFUSALS.includes(error.code)) return;
    const entry = toAuditEntry(bounded(act), error.code, this.#now());
    const { credentialId, action, result, at } = entry;
    const isCounted = await this.#database.writes
      .run(async (transaction) => {
        transaction.touch('refusals');
        await this.#flush(transaction, at);
        const { rows } = await transaction.execute({
          sql: `UPDATE refusals SET times = times + 1, entry = ?
            WHERE credential_id = ? AND action = ? AND result = ? RETURNING times`,
          args: [stringifyWellFormed(entry), credentialId, action, result],
        });
        if (rows.length > 0) return true;
        const row = { credentialId, action, result, dueAt: at + this.#windowMs, times: 0, entry };
        await transaction.execute(REFUSALS.one(row));
        await appendAuditEntry(transaction, entry);
        return false;
      })
      .catch(() => false);
    if (isCounted) this.#flushLater();
  }

  /** Starts recording due counts, including those of other processes. */
  start(): void {
    void this.flushDue();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  /** Records due counts. Never rejects. */
  async flushDue(): Promise<void> {
    const { reader, writes } = this.#database;
    try {
      const isDue = async () =>
        (await reader.execute({ sql: `SELECT 1 FROM refusals WHERE ${DUE} LIMIT 1`, args: this.#due(this.#now()) }))
          .rows.length > 0;
      while (!this.#isClosed && (await isDue()))
        await writes.run((transaction) => this.#flush(transaction, this.#now()), { keys: ['refusals'] });
      const { rows } = await reader.execute('SELECT 1 FROM refusals WHERE times > 0 LIMIT 1');
      if (rows.length > 0) this.#flushLater();
    } catch {
      this.#flushLater();
    }
  }

  #flushLater(): void {
    if (this.#timer !== undefined || this.#isClosed || !this.#isLongLived) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.flushDue();
    }, this.#windowMs);
    unref(this.#timer);
  }

  async #flush(transaction: WriteTransaction, now: number): Promise<void> {
    const result = await transaction.execute({
      sql: `SELECT ${ROW.columns()} FROM refusals WHERE ${DUE} ORDER BY due_at LIMIT ${MAX_PER_FLUSH}`,
      args: this.#due(now),
    });
    for (const { credentialId, action, result: code, times, entry } of ROW.all(result)) {
      const args = [credentialId, action, code];
      const where = 'WHERE credential_id = ? AND action = ? AND result = ?';
      if (times === 0) {
        await transaction.execute({ sql: `DELETE FROM refusals ${where}`, args });
        continue;
      }
      await appendAuditEntry(transaction, { ...entry, times });
      const sql = `UPDATE refusals SET times = 0, due_at = ? ${where}`;
      await transaction.execute({ sql, args: [now + this.#windowMs, ...args] });
    }
  }

  #due(now: number): number[] {
    return [now, now + this.#windowMs];
  }
}

/** Includes rows due more than a window from now: they were written before the clock was set back. */
const DUE = '(due_at <= ? OR due_at > ?)';

function bounded(act: AuditedAction): AuditedAction {
  const id = (text: string | null) => (text === null ? null : truncateText(text, MAX_ID_LENGTH));
  return {
    ...act,
    agentId: id(act.agentId),
    sessionId: id(act.sessionId),
    target: truncateText(act.target, MAX_TARGET),
  };
}
