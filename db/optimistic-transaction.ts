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

/** What is asked of a server: all statements of a batch run without anybody in between. */
export interface BatchServer {
  batch(statements: InStatement[], mode: 'read' | 'write'): Promise<ResultRows[]>;
  /** Runs them in a transaction, takes it back, and answers what they would have. */
  trial(statements: InStatement[]): Promise<ResultRows[]>;
}

/** It needs positions that are fixed, and its own are drafts. Nothing was written. */
export class NeedsFixedPositions extends RetryTransaction {}

/** Somebody has touched what this transaction read. Nothing was written. */
export class Conflict extends RetryTransaction {}

/**
 * A write transaction that holds no lock while its job thinks. Reads are answered at once; writes are collected, and sent
 * as one batch that does nothing if somebody has come in between.
 *
 * Ordering: its moment is that of its first read. What lies under the keys it touches is as it was then, or it fails.
 * Failure: until `commit` nothing is written, whatever becomes of this process. A refused statement is found when the batch
 * is sent, or when something that comes before is asked for what it has changed.
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
  /** The counter at its first read; null before. */
  #moment: number | null = null;
  #looks = 0;

  /**
   * @param version who writes, see may-write; null where nobody says who may
   * @param fixedAfter the counter, for positions that are fixed behind it; null for ones that are drafts
   */
  constructor(server: BatchServer, version: number | null, fixedAfter: number | null = null) {
    this.#server = server;
    this.#version = version;
    this.#positions = new ProvisionalPositions(fixedAfter);
  }

  /** What it has touched so far. */
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
    const look = async () => {
      if (reads.length > 0) answers.push(...(await this.#look(reads)));
      reads = [];
    };
    for (const statement of statements) {
      const sql = typeof statement === 'string' ? statement : statement.sql;
      const savepoint = SAVEPOINT.exec(sql);
      if (savepoint === null && isRead(sql)) {
        reads.push(statement);
        continue;
      }
      await look();
      if (savepoint !== null) {
        await this.#savepoint(savepoint[1]?.toUpperCase() ?? '', savepoint[2] ?? '');
        answers.push({ rows: [] });
        continue;
      }
      this.#writes.push(statement);
      for (const table of tablesOf(sql)) this.#written.add(table);
      answers.push(/\bRETURNING\b/i.test(sql) ? ((await this.#try([])).at(-1) ?? { rows: [] }) : { rows: [] });
    }
    await look();
    return answers;
  }

  /**
   * Writes all of it, or nothing.
   * @returns the counter behind it; null if there was nothing to write
   * @throws Conflict, Lookalike, and what the database throws
   */
  async commit(): Promise<number | null> {
    const moves = this.#positions.taken > 0 || (this.#writes.length > 0 && this.#touched.size > 0);
    if (!moves && this.#writes.length === 0) {
      await this.#requireMoment();
      return null;
    }
    const { isFixed, position } = this.#positions;
    const move = moves ? [this.#positions.moveForGood()] : [];
    // what is sent again must fail by its mark, and not by what it has moved itself
    const begin = isFixed
      ? [{ sql: NOTE_AT, args: [this.#mark, position] }, ...move]
      : [...move, { sql: NOTE, args: [this.#mark] }];
    const writes = this.#writes.map((statement) => this.#positions.settled(statement));
    const [first] = await this.#send([...begin, ...this.#guards(), ...writes]);
    if (!moves) return null;
    return isFixed ? position : Number(first?.rows[0]?.position);
  }

  /** What the job gave, with the positions of the commit. */
  given<T>(value: T, newest: number | null): T {
    return newest === null ? value : this.#positions.given(value, newest);
  }

  /**
   * A connection may break while a commit is under way: it is sent again, and known by its mark if it was done. What became
   * of it is asked as a write is, because replicas that answer reads may lag behind.
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
        // Whoever slept for so long in between that its mark is forgotten can't know whether it was done.
        if (isConflict(error) && broken !== null && (await this.#isForgotten())) throw broken;
        if (isConflict(error)) throw new Conflict('somebody came in between');
        if (isForbidden(error)) throw forbidden(error);
        broken = error;
        if (attempt === ATTEMPTS || !isBroken(error) || Date.now() - sentAt > KNOWN_MS) throw error;
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS * attempt));
      }
    }
  }

  async #isForgotten(): Promise<boolean> {
    const [found] = await this.#server.batch([FORGOTTEN], 'write');
    return Number(found?.rows[0]?.position ?? 0) > (this.#moment ?? 0);
  }

  async #requireMoment(): Promise<void> {
    // what was read at once is of one moment
    if (this.#looks < 2 || this.#relied.size + this.#touched.size === 0) return;
    const [found] = await this.#server.batch([this.#between()], 'read');
    if ((found?.rows.length ?? 0) > 0) throw new Conflict('somebody came in between');
  }

  #guards(): InStatement[] {
    const guards: InStatement[] = this.#version === null ? [] : [requireAllowed(this.#version)];
    if (this.#moment !== null) {
      const { sql, args } = this.#between();
      guards.push({ sql: `INSERT INTO counter (id, position) ${sql}`, args });
    }
    if (this.#touched.size > 0) {
      guards.push({ sql: TOUCH, args: [JSON.stringify([...this.#touched])] });
    }
    return guards;
  }

  /** Finds a row, that no table takes, if anybody has touched a key since. */
  #between(): { sql: string; args: [string, number] } {
    return { sql: BETWEEN, args: [JSON.stringify([...this.#touched, ...this.#relied]), this.#moment ?? 0] };
  }

  async #look(reads: InStatement[]): Promise<ResultRows[]> {
    this.#looks += 1;
    const isOwn = reads.some((read) =>
      [...tablesOf(typeof read === 'string' ? read : read.sql)].some((table) => this.#written.has(table)),
    );
    if (
      isOwn ||
      (this.#positions.taken > 0 && reads.some((read) => COUNTER.test(typeof read === 'string' ? read : read.sql)))
    )
      return (await this.#try(reads)).slice(-reads.length);
    if (this.#moment !== null) return await this.#read(reads);
    const [counter, ...answers] = await this.#read(['SELECT position FROM counter', ...reads]);
    this.#moment = Number(counter?.rows[0]?.position ?? 0);
    return answers;
  }

  /** Repeated once after a dead socket. */
  async #read(statements: InStatement[]): Promise<ResultRows[]> {
    try {
      return await this.#server.batch(statements, 'read');
    } catch (error) {
      if (!isBroken(error)) throw error;
      return await this.#server.batch(statements, 'read');
    }
  }

  /**
   * Runs all that was written so far, looks at it, and takes it back, in one go.
   * @returns the answers of the writes, and of `reads` behind them
   */
  async #try(reads: InStatement[]): Promise<ResultRows[]> {
    const first = this.#moment === null ? ['SELECT position FROM counter'] : [];
    const answers = await this.#server.trial([...first, this.#positions.moveOnTrial(), ...this.#writes, ...reads]);
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
    // who releases a savepoint wants to know whether what is behind it is taken
    if (this.#writes.length > mark.at) await this.#try([]);
    this.#savepoints.length = found;
  }
}

const ATTEMPTS = 4;
const AGAIN_MS = 100;
/** Marks are kept for longer. */
const KNOWN_MS = 5 * 60_000;

const SAVEPOINT = /^\s*(SAVEPOINT|RELEASE|ROLLBACK TO)\s+(\w+)\s*;?\s*$/i;
const COUNTER = /\bcounter\b/;

/** A row that can't be stored, for each key that was touched behind a moment; `forgotten` stands for those of which nobody knows. */
const BETWEEN = `SELECT 0, NULL FROM touched WHERE position > ?2
  AND (key = 'forgotten' OR key IN (SELECT value FROM json_each(?1))) LIMIT 1`;
export const TOUCH = `INSERT INTO touched (key, position)
  SELECT value, (SELECT position FROM counter) FROM json_each(?1) WHERE true
  ON CONFLICT (key) DO UPDATE SET position = excluded.position`;
export const NOTE = 'INSERT INTO commits (mark, position) VALUES (?, ifnull((SELECT position FROM counter), 0))';
const FORGOTTEN = `SELECT position FROM touched WHERE key = 'forgotten'`;
const NOTE_AT = 'INSERT INTO commits (mark, position) VALUES (?, ?)';
export const COMMITTED = 'SELECT position FROM commits WHERE mark = ?';

/** Whether this very commit was done before. */
function isRepeated(error: unknown): boolean {
  return error instanceof Error && /UNIQUE constraint failed: commits\.mark/.test(error.message);
}

function isConflict(error: unknown): boolean {
  return error instanceof Error && /NOT NULL constraint failed: counter\.position/.test(error.message);
}

/** Whether nobody knows what became of a request. */
const BROKEN = /^(ECONN|EPIPE|ETIMEDOUT|UND_ERR|UNREACHABLE|SERVER_ERROR|HRANA_(CLOSED|WEBSOCKET|PROTO)_ERROR)/;

export function isBroken(error: unknown): boolean {
  return BROKEN.test(databaseErrorCode(error) ?? '');
}

/** Whether a statement leaves everything as it is. */
export function isRead(sql: string): boolean {
  return /^\s*(SELECT|WITH|PRAGMA|EXPLAIN)\b/i.test(sql) && !/^\s*WITH\b[^;]*\b(INSERT|UPDATE|DELETE)\b/is.test(sql);
}

/** The names that stand where tables do: some of them are none, which does no harm. */
function tablesOf(sql: string): Set<string> {
  return new Set(
    [...sql.matchAll(/\b(?:FROM|JOIN|INTO|UPDATE|,)\s+(?:OR \w+ )?(\w+)/gi)].map(
      ([, name]) => name?.toLowerCase() ?? '',
    ),
  );
}

/**
 * Forgets what no transaction under way can meet any more: where keys were touched long ago, and the marks of commits.
 *
 * Failure: a process that froze in the middle of a transaction may wake up any time later. What was forgotten stands as
 * touched at the newest of it, so its transaction runs again.
 */
const FORGOTTEN_KEY = 'forgotten';
/** Commits that are kept, the newest of them: a quarter of an hour of as many as a server takes. */
const KEPT_COMMITS = 100_000;
const AT_ONCE = 5_000;

/** @returns whether there is more to forget */
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

/** The newest of those that go. Each commit has a higher row than those before it. */
const BOUND = `SELECT rowid AS last, position FROM commits
  WHERE rowid <= (SELECT max(rowid) FROM commits) - ? ORDER BY rowid DESC LIMIT 1`;
const REMOVE_MARKS = `DELETE FROM commits WHERE rowid IN (
  SELECT rowid FROM commits WHERE rowid <= ?1 ORDER BY rowid LIMIT ?2) RETURNING 1`;
const REMOVE_KEYS = `DELETE FROM touched WHERE key IN (
  SELECT key FROM touched INDEXED BY touched_by_position WHERE position <= ?1 AND key <> ?2 LIMIT ?3) RETURNING 1`;
const REMEMBER = `INSERT INTO touched (key, position) VALUES (?1, ?2)
  ON CONFLICT (key) DO UPDATE SET position = max(position, excluded.position)`;
