import { stringifyWellFormed } from '@interlude/protocol/well-formed';
import type { InStatement, InValue, Row } from '@libsql/client';
import { getTableColumns } from 'drizzle-orm';
import { getTableConfig, type SQLiteColumn, type SQLiteTable } from 'drizzle-orm/sqlite-core';
import { chunkStatements } from './json-statements';
import type { ResultRows } from './reader';

/**
 * Reads and writes table rows. SQL is written by hand, so that it can be measured and explained, and the schema gives
 * its rows their types. Nothing else converts between columns and values.
 */

type RowOf<Table extends SQLiteTable> = Table['$inferSelect'];
/** Every column is given a value, or is named in `lacks` and gets its default. */
type NewRowOf<Table extends SQLiteTable> = Required<Table['$inferInsert']>;

/** Some columns of a table: the list for a SELECT, and how to read its rows. */
export interface Shape<T> {
  /** Their names, for a SELECT; `as` if the table has an alias there. */
  columns(as?: string): string;
  /** @throws SyntaxError for damaged JSON */
  read(row: Row): T;
  all(result: ResultRows | undefined): T[];
  first(result: ResultRows | undefined): T | undefined;
}

/** @param keys the columns; by default all of them */
export function shapeOf<
  Table extends SQLiteTable,
  Key extends keyof RowOf<Table> & string = keyof RowOf<Table> & string,
>(table: Table, ...keys: Key[]): Shape<Pick<RowOf<Table>, Key>> {
  const fields = columnsOf(table).filter(([key]) => keys.length === 0 || (keys as string[]).includes(key));
  const read = (row: Row) => {
    const values: Record<string, unknown> = {};
    for (const [key, column] of fields) {
      const value = row[column.name];
      if (value === undefined) throw new TypeError(`The column ${column.name} was not selected`);
      values[key] = value === null ? null : column.mapFromDriverValue(value);
    }
    return values as Pick<RowOf<Table>, Key>;
  };
  return {
    columns: (as) => fields.map(([, { name }]) => (as === undefined ? name : `${as}.${name}`)).join(', '),
    read,
    all: (result) => (result?.rows ?? []).map(read),
    first: (result) => result?.rows.slice(0, 1).map(read)[0],
  };
}

/** The same for all columns but some. */
export function shapeWithout<Table extends SQLiteTable, Key extends keyof RowOf<Table> & string>(
  table: Table,
  ...keys: Key[]
): Shape<Pick<RowOf<Table>, Exclude<keyof RowOf<Table> & string, Key>>> {
  type Others = Exclude<keyof RowOf<Table> & string, Key>;
  const others = columnsOf(table).map(([key]) => key as Others | Key);
  return shapeOf(table, ...others.filter((key): key is Others => !(keys as string[]).includes(key)));
}

export interface WriterOptions<Table extends SQLiteTable, Same, Lacks> {
  /** Columns that have the same value in all rows of one call. */
  same?: readonly Same[];
  /** Columns that are left to their defaults. */
  lacks?: readonly Lacks[];
  /** What identifies a row; by default the primary key. */
  key?: readonly (keyof NewRowOf<Table>)[];
  /** If the row exists, these columns keep their values. If not given, such a row is an error. */
  keeps?: readonly (keyof NewRowOf<Table>)[];
}

/**
 * A statement that writes any number of rows, given as one JSON argument.
 *
 * Failure: text is made storable, see `columnText`; a JSON column keeps its value as it is, escapes included.
 */
export class RowWriter<
  Table extends SQLiteTable,
  Same extends keyof NewRowOf<Table> & string = never,
  Lacks extends keyof NewRowOf<Table> & string = never,
> {
  readonly #sql: string;
  readonly #each: readonly Field[];
  readonly #same: readonly Field[];

  constructor(table: Table, { same = [], lacks = [], key, keeps }: WriterOptions<Table, Same, Lacks> = {}) {
    const apart = new Set<string>([...same, ...lacks]);
    const columns = getTableColumns(table) as Record<string, SQLiteColumn>;
    this.#each = columnsOf(table).filter(([key]) => !apart.has(key));
    this.#same = same.map((key): Field => [key, columns[key] as SQLiteColumn]);
    const names = [...this.#each, ...this.#same].map(([, { name }]) => name);
    const values = [...this.#each.map(valueAt), ...same.map((_, at) => `?${at + 2}`)];
    const namesOf = (keys: WriterOptions<Table, Same, Lacks>['keeps']) =>
      keys?.map((key) => columns[key as string]?.name);
    const kept = namesOf(keeps);
    this.#sql = `INSERT INTO ${getTableConfig(table).name} (${names.join(', ')})
      SELECT ${values.join(', ')} FROM json_each(?1) WHERE true ${kept === undefined ? '' : upsert(namesOf(key) ?? keyOf(table), names, kept)}`;
  }

  /** One row, small enough for one argument. */
  one(row: Omit<NewRowOf<Table>, Same | Lacks>): InStatement {
    return { sql: this.#sql, args: [stringifyWellFormed([this.#cells(row)])] };
  }

  /** @param same what all of them have in common */
  rows<T>(
    values: readonly T[],
    toRow: (value: T) => Omit<NewRowOf<Table>, Same | Lacks>,
    ...[same]: [Same] extends [never] ? [] : [same: Pick<NewRowOf<Table>, Same>]
  ): Generator<InStatement> {
    const args = this.#same.map(([key, column]) => {
      const value = (same as Record<string, unknown> | undefined)?.[key];
      return isJson(column) ? stringifyWellFormed(value) : (cell(value) as InValue);
    });
    return chunkStatements(
      values,
      (json) => ({ sql: this.#sql, args: [json, ...args] }),
      (value) => this.#cells(toRow(value)),
    );
  }

  #cells(row: Record<string, unknown>): unknown[] {
    return this.#each.map(([key, column]) => (isJson(column) ? row[key] : cell(row[key])));
  }
}

type Field = [key: string, column: SQLiteColumn];

function columnsOf(table: SQLiteTable): Field[] {
  return Object.entries(getTableColumns(table) as Record<string, SQLiteColumn>);
}

function isJson({ dataType }: SQLiteColumn): boolean {
  return dataType === 'json';
}

/** `->` hands JSON on as it is, `->>` a value of SQL. */
function valueAt([, column]: Field, at: number): string {
  if (!isJson(column)) return `value->>${at}`;
  return column.notNull ? `value->${at}` : `nullif(value->${at}, 'null')`;
}

function keyOf(table: SQLiteTable): string[] {
  const { columns, primaryKeys } = getTableConfig(table);
  const own = columns.filter(({ primary }) => primary);
  return (own.length > 0 ? own : (primaryKeys[0]?.columns ?? [])).map(({ name }) => name);
}

type Names = readonly (string | undefined)[];

function upsert(key: Names, names: Names, kept: Names): string {
  const changed = names.filter((name) => !key.includes(name) && !kept.includes(name));
  return `ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${changed.map((name) => `${name} = excluded.${name}`).join(', ')}`;
}

function cell(value: unknown): unknown {
  if (value === undefined) return null;
  return typeof value === 'string' ? columnText(value) : value;
}

/**
 * Text that is safe in a column of its own. SQLite stores a NUL, but libSQL cuts the text off there when it is read
 * back. Inside a JSON column it stays escaped and needs nothing. (Half a surrogate pair, at which libSQL would end the
 * process, does not come this far: every door makes its strings well-formed.)
 */
export function columnText(value: string): string {
  return value.includes('\0') ? value.replaceAll('\0', '\uFFFD') : value;
}
