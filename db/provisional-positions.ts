import type { InStatement, InValue } from '@libsql/client';
import { RetryTransaction } from './writes';

export const PER_COMMIT = 100_000;
const PLACES = 5;
/** 11 leading digits: 7 that are the same in all blocks, and 4 for the block. */
const HEADS = { least: 8_000_000, many: 900_000 };
const REST = 10_000;
/** Blocks of `PER_COMMIT` positions, far more than a request needs. */
const MAX_BLOCKS = 100;
const LENGTH = 16;
/**
 * Range of a random offset for fixed positions, which leaves room for commits that come first. Random, so the second of
 * two such commits often fits as well.
 */
const MIN_AHEAD = 256;
const MAX_AHEAD = 1_024;

/**
 * Delimiters for replaced digits. Each text uses the first delimiter that it does not contain. JSON contains none.
 */
const MARKS = ['\u0001', '\u0002', '\u0003', '\u0004'];

/** Thrown if a record holds a number that looks like a provisional position, but was not assigned. */
export class PositionCollision extends RetryTransaction {}

/**
 * Stand-in positions of a transaction, until its commit decides the real ones.
 *
 * On a server each commit has a number, and its positions are `number × 100,000 + 1, 2, 3, …`. Provisional positions
 * only differ in their leading digits, which are random and greater than any commit's, so they sort last while the
 * transaction runs. The commit's statements replace them with the real ones, in numbers, texts and JSON alike.
 *
 * ```
 *  provisional   8123456 0042 00001   8123456 0042 00002      (head 7 digits, block 4, place 5)
 *  committed     number × 100000 + 1  number × 100000 + 2     by SQL, where `number` is known
 * ```
 *
 * Failure: a record may hold a number that looks like a provisional position. If the transaction has not assigned that
 * position, the collision is detected, and the job runs again with other digits.
 */
export class ProvisionalPositions {
  /** Leading digits of the first block. */
  readonly #lead: number;
  /** Digits that all positions start with. */
  readonly #head: string;
  readonly isFixed: boolean = false;
  #count = 0;

  /**
   * @param after if set, positions after it are fixed: they are committed unchanged, or not at all if the counter has
   * passed them
   */
  constructor(after: number | null = null, random: () => number = Math.random) {
    if (after !== null) {
      this.isFixed = true;
      this.#lead = Math.floor(after / PER_COMMIT) + MIN_AHEAD + Math.floor(random() * MAX_AHEAD);
      this.#head = '';
      return;
    }
    const head = HEADS.least + Math.floor(random() * HEADS.many);
    this.#head = String(head);
    this.#lead = head * REST + Math.floor(random() * (REST - MAX_BLOCKS));
  }

  /** The newest assigned position; before the first, a position after everything stored. */
  get position(): number {
    return this.#lead * PER_COMMIT + this.#count;
  }

  get count(): number {
    return this.#count;
  }

  moveTo(position: number): void {
    const offset = position - this.#lead * PER_COMMIT;
    if (offset < this.#count || offset >= MAX_BLOCKS * PER_COMMIT)
      throw new RangeError(`not a position of this transaction: ${position}`);
    this.#count = offset;
  }

  /** Advances the counter to the provisional positions, for a trial. */
  moveForTrial(): InStatement {
    return { sql: MOVE_COUNTER, args: [this.position] };
  }

  /** Advances the counter to the positions of the commit, and returns it. */
  moveToCommit(): InStatement {
    if (this.isFixed) return { sql: MOVE_ON, args: [this.position, this.#lead * PER_COMMIT] };
    const sql = `INSERT INTO counter (id, position) VALUES (1, ${PER_COMMIT} + ?1)
      ON CONFLICT (id) DO UPDATE SET position = (position / ${PER_COMMIT} + 1) * ${PER_COMMIT} + ?1 RETURNING position`;
    return { sql, args: [this.#count] };
  }

  /** Rewrites a statement for the commit, after `moveToCommit`. */
  committed(statement: InStatement): InStatement {
    if (this.isFixed || typeof statement === 'string' || statement.args === undefined) return statement;
    if (!Array.isArray(statement.args)) throw new TypeError('named arguments are not supported');
    const changes = new Map<number, string>();
    const args = statement.args.map((value, index): InValue => {
      const { expression, argument } = this.#committedArgument(value, index + 1) ?? {};
      if (expression !== undefined) changes.set(index + 1, expression);
      return argument ?? value;
    });
    if (changes.size === 0) return statement;
    let count = 0;
    const sql = statement.sql.replace(/\?(\d*)/g, (_, digits: string) => {
      const number = digits === '' ? count + 1 : Number(digits);
      count = Math.max(count, number);
      return changes.get(number) ?? `?${number}`;
    });
    return { sql, args };
  }

  /**
   * Replaces provisional positions in a job's result.
   * @param newest the counter after the commit
   */
  resultOf<T>(value: T, newest: number): T {
    if (this.#count === 0 || this.isFixed) return value;
    const shift = newest - this.position;
    const replace = (found: unknown): unknown => {
      if (typeof found === 'number') return this.#isOwn(found) ? found + shift : found;
      if (typeof found === 'string') return this.#replaced(found, (number) => String(number + shift));
      if (Array.isArray(found)) return found.map(replace);
      if (found === null || typeof found !== 'object') return found;
      if (found instanceof Map) return new Map([...found].map(([key, entry]) => [replace(key), replace(entry)]));
      if (Object.getPrototypeOf(found) !== Object.prototype) return found;
      return Object.fromEntries(Object.entries(found).map(([key, entry]) => [key, replace(entry)]));
    };
    return replace(value) as T;
  }

  #committedArgument(value: unknown, at: number): { expression: string; argument?: InValue } | null {
    if (typeof value === 'number') return this.#isOwn(value) ? { expression: `(?${at} + ${this.#shift()})` } : null;
    return typeof value === 'string' ? this.#committedText(value, at) : null;
  }

  #committedText(text: string, at: number): { expression: string; argument: string } | null {
    const blocks = new Set<number>();
    const mark = MARKS.find((sign) => !text.includes(sign)) ?? '';
    const argument = this.#replaced(text, (number, digits) => {
      if (mark === '') throw new PositionCollision(digits);
      const block = Math.floor(number / PER_COMMIT) - this.#lead;
      blocks.add(block);
      return `${mark}${block}${mark}${digits.slice(-PLACES)}`;
    });
    if (blocks.size === 0) return null;
    let expression = `?${at}`;
    for (const block of blocks) {
      expression = `replace(${expression}, '${mark}${block}${mark}', ${this.#number()} + ${block})`;
    }
    return { expression, argument };
  }

  /** Replaces the positions in a text. @throws PositionCollision */
  #replaced(text: string, word: (number: number, digits: string) => string): string {
    let replaced = '';
    let from = 0;
    for (let found = text.indexOf(this.#head); found !== -1; found = text.indexOf(this.#head, found + 1)) {
      const end = found + LENGTH;
      const digits = text.slice(found, end);
      const number = Number(digits);
      const isWhole = !/[\d.]/.test(text[found - 1] ?? '') && !/[\d.eE]/.test(text[end] ?? '');
      if (!isWhole || digits.length < LENGTH || !/^\d+$/.test(digits) || !this.#isProvisional(number)) continue;
      if (!this.#isOwn(number)) throw new PositionCollision(digits);
      replaced += text.slice(from, found) + word(number, digits);
      from = end;
    }
    return replaced + text.slice(from);
  }

  /** The commit's number, as SQL. */
  #number(): string {
    return `(SELECT (position - ${this.#count}) / ${PER_COMMIT} FROM counter)`;
  }

  #shift(): string {
    return `(SELECT position FROM counter) - ${this.position}`;
  }

  #isProvisional(number: number): boolean {
    const offset = number - this.#lead * PER_COMMIT;
    return offset >= 0 && offset < MAX_BLOCKS * PER_COMMIT;
  }

  /** Includes the position after the last one, which some columns store. */
  #isOwn(number: number): boolean {
    const offset = number - this.#lead * PER_COMMIT;
    return offset >= 0 && offset <= this.#count + 1;
  }
}

/** Fails if the counter has passed the positions. */
const MOVE_ON = `INSERT INTO counter (id, position) VALUES (1, ?1)
  ON CONFLICT (id) DO UPDATE SET position = iif(position < ?2, excluded.position, NULL) RETURNING position`;
const MOVE_COUNTER = `INSERT INTO counter (id, position) VALUES (1, ?1)
  ON CONFLICT (id) DO UPDATE SET position = excluded.position`;
