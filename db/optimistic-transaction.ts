import type { InStatement } from '@libsql/client';
import { databaseErrorCode } from './database-error';
import { ProvisionalPositions } from './provisional-positions';
import type { Reader, ResultRows } from './reader';
import {
  forbidden,
  isForbidden,
  RetryTransaction,
  requireAllowed,
  type WriteKey,
  type Writes,
  type WriteTransaction,
} from './writes';

export interface BatchServer {
  /** Runs all statements without others in between. */
  batch(statements: InStatement[], mode: 'read' | 'write'): Promise<ResultRows[]>;
  /** Runs the statements in a transaction, rolls it back, and returns their results. */
  trial(statements: InStatement[]): Promise<ResultRows[]>;
}

/** Thrown if the job needs fixed positions, and this transaction's are provisional. Nothing was written. */
export class NeedsFixedPositions extends RetryTransaction {}

/** Thrown if another transaction touched rows that this one read. Nothing was written. */
export class Conflict extends RetryTransaction {}

/**
 * A write transaction that holds no lock while its job runs. Reads run immediately. Writes are collected and sent as
 * one batch, which does nothing if another transaction touched the same keys in between.
 *
 * ```
 *  job      read k ──── compute ──── write          (no lock, no open transaction)
 *  server   moment = 41                 │ one batch: mark, guard (touched[k] ≤ 41?), touch k, writes
 *                                       ▼
 *                              committed at 42, or Conflict and the job runs again
 * ```
 *
 * Ordering: the transaction's moment is its first read. Rows under the touched keys are unchanged since then, or the
 * commit fails.
 * Failure: nothing is written before `commit`, even if this process ends. The server may refuse a statement when the
 * batch is sent, or earlier, when the job reads a table that the statement changes.
 */
export class OptimisticTransaction implements WriteTransaction {
  readonly #server: BatchServer;
  readonly #positions: ProvisionalPositions;
  readonly #version: number | null;
  readonly #writes: InStatement[] = [];
  readonly #written = new Set<string>();
  readonly #savepoints: { name: string; at: number }[] = [];
  readonly #mark = crypto.randomUUID();
  readonly #touched = new Set<WriteKey>();
  readonly #relied = new Set<WriteKey>();
  /** The counter at the first read; null before. */
  #moment: number | null = null;
  #reads = 0;

  /**
   * @param version of the writer, see `requireAllowed`; null to skip the check
   * @param fixedAfter the counter, for fixed positions after it; null for provisional ones
   */
  constructor(server: BatchServer, version: number | null, fixedAfter: number | null = null) {
    this.#server = server;
    this.#version = version;
    this.#positions = new ProvisionalPositions(fixedAfter);
  }

  get keys(): WriteKey[] {
    return [...this.#touched];
  }

  fixPositions(): void {
    if (!this.#positions.isFixed) throw new NeedsFixedPositions();
  }

  async position(): Promise<number> {
    return this.#positions.position;
  }

  async moveTo(position: number): Promise<void> {
    this.#positions.moveTo(position);
  }

  touch(...keys: WriteKey[]): void {
    for (const key of keys) this.#touched.add(key);
  }

  rely(...keys: WriteKey[]): void {
    for (const key of keys) this.#relied.add(key);
  }

  async execute(statement: InStatement): Promise<ResultRows> {
    const [answer] = await this.batch([statement]);
    return answer ?? { rows: [] };
  }

  async batch(statements: InStatement[]): Promise<ResultRows[]> {
    const answers: ResultRows[] = [];
    let reads: InStatement[] = [];
    const flushReads = async () => {
      if (reads.length > 0) answers.push(...(await this.#read(reads)));
      reads = [];
    };
    for (const statement of statements) {
      const sql = typeof statement === 'string' ? statement : statement.sql;
      const savepoint = SAVEPOINT.exec(sql);
      if (savepoint === null && isRead(sql)) {
        reads.push(statement);
        continue;
      }
      await flushReads();
      if (savepoint !== null) {
        await this.#savepoint(savepoint[1]?.toUpperCase() ?? '', savepoint[2] ?? '');
        answers.push({ rows: [] });
        continue;
      }
      this.#writes.push(statement);
      for (const table of tablesOf(sql)) this.#written.add(table);
      answers.push(/\bRETURNING\b/i.test(sql) ? ((await this.#trial([])).at(-1) ?? { rows: [] }) : { rows: [] });
    }
    await flushReads();
    return answers;
  }

  /**
   * Writes everything or nothing.
   * @returns the counter after the commit; null if there was nothing to write
   * @throws Conflict, PositionCollision, and errors of the database
   */
  async commit(): Promise<number | null> {
    const moves = this.#positions.count > 0 || (this.#writes.length > 0 && this.#touched.size > 0);
    if (!moves && this.#writes.length === 0) {
      await this.#requireMoment();
      return null;
    }
    const { isFixed, position } = this.#positions;
    const move = moves ? [this.#positions.moveToCommit()] : [];
    // A batch sent twice must fail by its mark, not by the counter that it moved itself.
    const begin = isFixed
      ? [{ sql: NOTE_AT, args: [this.#mark, position] }, ...move]
      : [...move, { sql: NOTE, args: [this.#mark] }];
    const writes = this.#writes.map((statement) => this.#positions.committed(statement));
    const [first] = await this.#send([...begin, ...this.#guards(), ...writes]);
    if (!moves) return null;
    return isFixed ? position : Number(first?.rows[0]?.position);
  }

  /** Replaces provisional positions in the job's result. */
  resultOf<T>(value: T, newest: number | null): T {
    return newest === null ? value : this.#positions.resultOf(value, newest);
  }

  /**
   * Sends the batch again if the connection breaks. The batch's mark shows if it was committed. The mark is read from
   * the primary, since replicas may lag behind.
   */
  async #send(statements: InStatement[]): Promise<ResultRows[]> {
    let broken: unknown = null;
    const sentAt = Date.now();
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#server.batch(statements, 'write');
      } catch (error) {
        if (isRepeated(error)) {
          const [found] = await this.#server.batch([{ sql: COMMITTED, args: [this.#mark] }], 'write');
          if (found === undefined || found.rows.length === 0) throw broken ?? error;
          return [found];
        }
        // The process paused for so long that the mark may have been pruned, so the outcome is unknown.
        if (isConflict(error) && broken !== null && (await this.#isMarkPruned())) throw broken;
        if (isConflict(error)) throw new Conflict('another transaction touched the same keys');
        if (isForbidden(error)) throw forbidden(error);
        broken = error;
        if (attempt === ATTEMPTS || !isBroken(error) || Date.now() - sentAt > MARK_MS) throw error;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS * attempt));
      }
    }
  }

  async #isMarkPruned(): Promise<boolean> {
    const [found] = await this.#server.batch([FORGOTTEN], 'write');
    return Number(found?.rows[0]?.position ?? 0) > (this.#moment ?? 0);
  }

  async #requireMoment(): Promise<void> {
    // A single read is always consistent.
    if (this.#reads < 2 || this.#relied.size + this.#touched.size === 0) return;
    const [found] = await this.#server.batch([this.#touchedSince()], 'read');
    if ((found?.rows.length ?? 0) > 0) throw new Conflict('another transaction touched the same keys');
  }

  #guards(): InStatement[] {
    const guards: InStatement[] = this.#version === null ? [] : [requireAllowed(this.#version)];
    if (this.#moment !== null) {
      const { sql, args } = this.#touchedSince();
      guards.push({ sql: `INSERT INTO counter (id, position) ${sql}`, args });
    }
    if (this.#touched.size > 0) {
      guards.push({ sql: TOUCH, args: [JSON.stringify([...this.#touched])] });
    }
    return guards;
  }

  /** Selects an unstorable row if a key was touched after the transaction's moment. */
  #touchedSince(): { sql: string; args: [string, number] } {
    return { sql: TOUCHED_SINCE, args: [JSON.stringify([...this.#touched, ...this.#relied]), this.#moment ?? 0] };
  }

  async #read(reads: InStatement[]): Promise<ResultRows[]> {
    this.#reads += 1;
    const texts = reads.map((read) => (typeof read === 'string' ? read : read.sql));
    const readsOwnWrites = texts.some((sql) => [...tablesOf(sql)].some((table) => this.#written.has(table)));
    const readsCounter = this.#positions.count > 0 && texts.some((sql) => COUNTER.test(sql));
    if (readsOwnWrites || readsCounter) return (await this.#trial(reads)).slice(-reads.length);
    if (this.#moment !== null) return await this.#readBatch(reads);
    const [counter, ...answers] = await this.#readBatch(['SELECT position FROM counter', ...reads]);
    this.#moment = Number(counter?.rows[0]?.position ?? 0);
    return answers;
  }

  /** Retries once after a dead socket. */
  async #readBatch(statements: InStatement[]): Promise<ResultRows[]> {
    try {
      return await this.#server.batch(statements, 'read');
    } catch (error) {
      if (!isBroken(error)) throw error;
      return await this.#server.batch(statements, 'read');
    }
  }

  /**
   * Runs the collected writes in a trial that is rolled back.
   * @returns the results of the writes, and of the `reads` after them
   */
  async #trial(reads: InStatement[]): Promise<ResultRows[]> {
    const first = this.#moment === null ? ['SELECT position FROM counter'] : [];
    const answers = await this.#server.trial([...first, this.#positions.moveForTrial(), ...this.#writes, ...reads]);
    if (this.#moment === null) this.#moment = Number(answers[0]?.rows[0]?.position ?? 0);
    return answers.slice(first.length + 1);
  }

  async #savepoint(verb: string, name: string): Promise<void> {
    if (verb === 'SAVEPOINT') {
      this.#savepoints.push({ name, at: this.#writes.length });
      return;
    }
    const found = this.#savepoints.findLastIndex((mark) => mark.name === name);
    const mark = this.#savepoints[found];
    if (mark === undefined) throw new Error(`no savepoint ${name}`);
    if (verb === 'ROLLBACK TO') {
      this.#writes.length = mark.at;
      this.#savepoints.length = found + 1;
      return;
    }
    // Releasing a savepoint checks that the server accepts its statements.
    if (this.#writes.length > mark.at) await this.#trial([]);
    this.#savepoints.length = found;
  }
}

const ATTEMPTS = 4;
const RETRY_MS = 100;
/** Age up to which a mark is certain to exist. */
const MARK_MS = 5 * 60_000;

const SAVEPOINT = /^\s*(SAVEPOINT|RELEASE|ROLLBACK TO)\s+(\w+)\s*;?\s*$/i;
const COUNTER = /\bcounter\b/;

/** Key that stands for all pruned keys. */
const FORGOTTEN_KEY = 'forgotten';
/** Selects an unstorable row if a key was touched after a moment. */
const TOUCHED_SINCE = `SELECT 0, NULL FROM touched WHERE position > ?2
  AND (key = '${FORGOTTEN_KEY}' OR key IN (SELECT value FROM json_each(?1))) LIMIT 1`;
export const TOUCH = `INSERT INTO touched (key, position)
  SELECT value, (SELECT position FROM counter) FROM json_each(?1) WHERE true
  ON CONFLICT (key) DO UPDATE SET position = excluded.position`;
export const NOTE = 'INSERT INTO commits (mark, position) VALUES (?, ifnull((SELECT position FROM counter), 0))';
const FORGOTTEN = `SELECT position FROM touched WHERE key = '${FORGOTTEN_KEY}'`;
const NOTE_AT = 'INSERT INTO commits (mark, position) VALUES (?, ?)';
export const COMMITTED = 'SELECT position FROM commits WHERE mark = ?';

/** The batch had already been committed. */
function isRepeated(error: unknown): boolean {
  return error instanceof Error && /UNIQUE constraint failed: commits\.mark/.test(error.message);
}

function isConflict(error: unknown): boolean {
  return error instanceof Error && /NOT NULL constraint failed: counter\.position/.test(error.message);
}

/** The outcome of the request is unknown. */
const BROKEN = /^(ECONN|EPIPE|ETIMEDOUT|UND_ERR|UNREACHABLE|SERVER_ERROR|HRANA_(CLOSED|WEBSOCKET|PROTO)_ERROR)/;

export function isBroken(error: unknown): boolean {
  return BROKEN.test(databaseErrorCode(error) ?? '');
}

/** True if the statement changes nothing. */
export function isRead(sql: string): boolean {
  return /^\s*(SELECT|WITH|PRAGMA|EXPLAIN)\b/i.test(sql) && !/^\s*WITH\b[^;]*\b(INSERT|UPDATE|DELETE)\b/is.test(sql);
}

/** Names where SQL expects a table. Some are not tables, which is harmless. */
function tablesOf(sql: string): Set<string> {
  return new Set(
    [...sql.matchAll(/\b(?:FROM|JOIN|INTO|UPDATE|,)\s+(?:OR \w+ )?(\w+)/gi)].map(
      ([, name]) => name?.toLowerCase() ?? '',
    ),
  );
}

/** Number of newest commits to keep: about 15 minutes of a busy server. */
const KEPT_COMMITS = 100_000;
const AT_ONCE = 5_000;

/**
 * Prunes old marks, and keys touched long ago, which no running transaction can conflict with.
 *
 * Failure: a process that froze within a transaction may wake up much later. All pruned keys count as touched at the
 * newest pruned time, so its transaction conflicts and runs again.
 *
 * @returns true if there is more to prune
 */
export async function pruneCommits(
  reader: Pick<Reader, 'execute'>,
  writes: Writes,
  kept = KEPT_COMMITS,
): Promise<boolean> {
  const [bound] = (await reader.execute({ sql: BOUND, args: [kept] })).rows;
  if (bound === undefined) return false;
  const [last, upTo] = [Number(bound.last), Number(bound.position)];
  return await writes.run(async (transaction) => {
    const { rows } = await transaction.execute({ sql: REMOVE_MARKS, args: [last, AT_ONCE] });
    const { rows: keys } = await transaction.execute({ sql: REMOVE_KEYS, args: [upTo, FORGOTTEN_KEY, AT_ONCE] });
    if (rows.length + keys.length > 0) await transaction.execute({ sql: REMEMBER, args: [FORGOTTEN_KEY, upTo] });
    return Math.max(rows.length, keys.length) === AT_ONCE;
  });
}

/** Selects the newest commit to prune. Rows are in commit order. */
const BOUND = `SELECT rowid AS last, position FROM commits
  WHERE rowid <= (SELECT max(rowid) FROM commits) - ? ORDER BY rowid DESC LIMIT 1`;
const REMOVE_MARKS = `DELETE FROM commits WHERE rowid IN (
  SELECT rowid FROM commits WHERE rowid <= ?1 ORDER BY rowid LIMIT ?2) RETURNING 1`;
const REMOVE_KEYS = `DELETE FROM touched WHERE key IN (
  SELECT key FROM touched INDEXED BY touched_by_position WHERE position <= ?1 AND key <> ?2 LIMIT ?3) RETURNING 1`;
const REMEMBER = `INSERT INTO touched (key, position) VALUES (?1, ?2)
  ON CONFLICT (key) DO UPDATE SET position = max(position, excluded.position)`;
