import type { InStatement, InValue } from '@libsql/client';
import { RetryTransaction } from './writes';

/**
 * Positions of a transaction whose place in the order nobody knows before it commits.
 *
 * A commit on a server has a number, and its positions are `number × 100,000 + 1, 2, 3, …`, so they differ from a draft
 * of them in their leading digits only. A draft has leading digits of its own, greater than any commit's, so that its
 * positions come after all others while the transaction runs; the commit's statements put the real ones in, wherever
 * they stand: in a number, a text, or deep within JSON.
 *
 * Failure: a record may hold a number that looks like one of the draft's. The digits are random, and one that the draft
 * has not taken gives it away: then the draft is thrown away, and the next one has other digits.
 */
export const PER_COMMIT = 100_000;
const PLACES = 5;
/** A position of a draft has 11 leading digits, of which the first 7 are the same in all of its blocks, and 5 more. */
const HEADS = { least: 8_000_000, many: 900_000 };
const REST = 10_000;
/** Blocks of `PER_COMMIT` positions: far more than a request can ask for. */
const MOST_BLOCKS = 100;
const LENGTH = 16;
/**
 * How many commits others may make before one whose positions are fixed; they go on behind it. By chance, so that of two
 * that are fixed at once the second often still fits.
 */
const LEAST_AHEAD = 256;
const MOST_AHEAD = 1_024;

/** Around what takes the place of a draft's digits in a text; one that the text does not have. JSON has none of them. */
const MARKS = ['\u0001', '\u0002', '\u0003', '\u0004'];

/** A number of the draft's kind that the draft has not taken: another draft must be made. */
export class PositionCollision extends RetryTransaction {}

export class ProvisionalPositions {
  /** The leading digits of its first block. */
  readonly #lead: number;
  /** The digits that all of its positions begin with. */
  readonly #head: string;
  readonly isFixed: boolean = false;
  #taken = 0;

  /** @param after fixes them: they are committed as they are, as long as the counter is not so far yet */
  constructor(after: number | null = null, random: () => number = Math.random) {
    if (after !== null) {
      this.isFixed = true;
      this.#lead = Math.floor(after / PER_COMMIT) + LEAST_AHEAD + Math.floor(random() * MOST_AHEAD);
      this.#head = '';
      return;
    }
    const head = HEADS.least + Math.floor(random() * HEADS.many);
    this.#head = String(head);
    this.#lead = head * REST + Math.floor(random() * (REST - MOST_BLOCKS));
  }

  /** The newest position that was taken; before the first, one that is before it and after all that is stored. */
  get position(): number {
    return this.#lead * PER_COMMIT + this.#taken;
  }

  get taken(): number {
    return this.#taken;
  }

  moveTo(position: number): void {
    const taken = position - this.#lead * PER_COMMIT;
    if (taken < this.#taken || taken >= MOST_BLOCKS * PER_COMMIT)
      throw new RangeError(`no position of this draft: ${position}`);
    this.#taken = taken;
  }

  /** Moves the counter to the draft's own positions, for a look at what it would write. */
  moveOnTrial(): InStatement {
    return { sql: MOVE_COUNTER, args: [this.position] };
  }

  /** Moves the counter to the positions of the next commit; answers with it. */
  moveForGood(): InStatement {
    if (this.isFixed) return { sql: MOVE_ON, args: [this.position, this.#lead * PER_COMMIT] };
    const sql = `INSERT INTO counter (id, position) VALUES (1, ${PER_COMMIT} + ?1)
      ON CONFLICT (id) DO UPDATE SET position = (position / ${PER_COMMIT} + 1) * ${PER_COMMIT} + ?1 RETURNING position`;
    return { sql, args: [this.#taken] };
  }

  /** The statement as it is committed, behind `moveForGood`. */
  settled(statement: InStatement): InStatement {
    if (this.isFixed || typeof statement === 'string' || statement.args === undefined) return statement;
    if (!Array.isArray(statement.args)) throw new TypeError('arguments of a write are given in order');
    const changes = new Map<number, string>();
    const args = statement.args.map((value, at): InValue => {
      const { expression, argument } = this.#settledArgument(value, at + 1) ?? {};
      if (expression !== undefined) changes.set(at + 1, expression);
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
   * What a job gave, with the positions as they were committed.
   * @param newest the counter behind the commit
   */
  given<T>(value: T, newest: number): T {
    if (this.#taken === 0 || this.isFixed) return value;
    const shift = newest - this.position;
    const settle = (found: unknown): unknown => {
      if (typeof found === 'number') return this.#isOwn(found) ? found + shift : found;
      if (typeof found === 'string') return this.#replaced(found, (number) => String(number + shift));
      if (Array.isArray(found)) return found.map(settle);
      if (found === null || typeof found !== 'object') return found;
      if (found instanceof Map) return new Map([...found].map(([key, entry]) => [settle(key), settle(entry)]));
      if (Object.getPrototypeOf(found) !== Object.prototype) return found;
      return Object.fromEntries(Object.entries(found).map(([key, entry]) => [key, settle(entry)]));
    };
    return settle(value) as T;
  }

  #settledArgument(value: unknown, at: number): { expression: string; argument?: InValue } | null {
    if (typeof value === 'number') return this.#isOwn(value) ? { expression: `(?${at} + ${this.#shift()})` } : null;
    return typeof value === 'string' ? this.#settledText(value, at) : null;
  }

  #settledText(text: string, at: number): { expression: string; argument: string } | null {
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

  /**
   * The text with other words for the draft's positions.
   * @throws Lookalike
   */
  #replaced(text: string, word: (number: number, digits: string) => string): string {
    let replaced = '';
    let from = 0;
    for (let found = text.indexOf(this.#head); found !== -1; found = text.indexOf(this.#head, found + 1)) {
      const end = found + LENGTH;
      const digits = text.slice(found, end);
      const number = Number(digits);
      const isWhole = !/[\d.]/.test(text[found - 1] ?? '') && !/[\d.eE]/.test(text[end] ?? '');
      if (!isWhole || digits.length < LENGTH || !/^\d+$/.test(digits) || !this.#isOfDraft(number)) continue;
      if (!this.#isOwn(number)) throw new PositionCollision(digits);
      replaced += text.slice(from, found) + word(number, digits);
      from = end;
    }
    return replaced + text.slice(from);
  }

  /** The commit's number, as SQL. */
  #number(): string {
    return `(SELECT (position - ${this.#taken}) / ${PER_COMMIT} FROM counter)`;
  }

  #shift(): string {
    return `(SELECT position FROM counter) - ${this.position}`;
  }

  #isOfDraft(number: number): boolean {
    const taken = number - this.#lead * PER_COMMIT;
    return taken >= 0 && taken < MOST_BLOCKS * PER_COMMIT;
  }

  /** Some columns note the position behind the last one. */
  #isOwn(number: number): boolean {
    const taken = number - this.#lead * PER_COMMIT;
    return taken >= 0 && taken <= this.#taken + 1;
  }
}

/** Fails where the counter is beyond already. */
const MOVE_ON = `INSERT INTO counter (id, position) VALUES (1, ?1)
  ON CONFLICT (id) DO UPDATE SET position = iif(position < ?2, excluded.position, NULL) RETURNING position`;
const MOVE_COUNTER = `INSERT INTO counter (id, position) VALUES (1, ?1)
  ON CONFLICT (id) DO UPDATE SET position = excluded.position`;
