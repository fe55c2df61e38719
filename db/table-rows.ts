import { stringifyWellFormed } from '@interlude/protocol/json';
import type { InStatement, InValue, Row } from '@libsql/client';
import { getTableColumns } from 'drizzle-orm';
import { getTableConfig, type SQLiteColumn, type SQLiteTable } from 'drizzle-orm/sqlite-core';
import { chunkStatements } from './json-statements';
import type { ResultRows } from './reader';

/** Rows of the tables. SQL is written by hand, and the schema types its rows. No other code converts column values. */

type RowOf<Table extends SQLiteTable> = Table['$inferSelect'];
/** Every column has a value, or is listed in `lacks` and gets its default. */
type NewRowOf<Table extends SQLiteTable> = Required<Table['$inferInsert']>;

/** Some columns of a table, for a SELECT and for reading its rows. */
interface Shape<T> {
  /** Column names. @param as alias of the table */
  columns(as?: string): string;
  /** @throws SyntaxError for invalid JSON */
  read(row: Row): T;
  all(result: ResultRows | undefined): T[];
  first(result: ResultRows | undefined): T | undefined;
}

/** @param keys all columns by default */
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

/** The shape of a table without the columns `keys`. */
export function shapeWithout<Table extends SQLiteTable, Key extends keyof RowOf<Table> & string>(
  table: Table,
  ...keys: Key[]
): Shape<Pick<RowOf<Table>, Exclude<keyof RowOf<Table> & string, Key>>> {
  type Kept = Exclude<keyof RowOf<Table> & string, Key>;
  const all = columnsOf(table).map(([key]) => key as Kept | Key);
  return shapeOf(table, ...all.filter((key): key is Kept => !(keys as string[]).includes(key)));
}

interface WriterOptions<Table extends SQLiteTable, Same, Lacks> {
  /** Columns with the same value in all rows of a call. */
  same?: readonly Same[];
  /** Columns left to their defaults. */
  lacks?: readonly Lacks[];
  /** Columns that identify a row; by default the primary key. */
  key?: readonly (keyof NewRowOf<Table>)[];
  /** Columns of an existing row that keep their values. Without this, an existing row is an error. */
  keeps?: readonly (keyof NewRowOf<Table>)[];
}

/** Inserts or updates any number of rows, given as one JSON argument. Text is made storable; JSON columns are not changed. */
export class RowWriter<
  Table extends SQLiteTable,
  Same extends keyof NewRowOf<Table> & string = never,
  Lacks extends keyof NewRowOf<Table> & string = never,
> {
  readonly #sql: string;
  readonly #each: readonly Field[];
  readonly #same: readonly Field[];

  constructor(table: Table, { same = [], lacks = [], key, keeps }: WriterOptions<Table, Same, Lacks> = {}) {
    const separate = new Set<string>([...same, ...lacks]);
    const columns = getTableColumns(table) as Record<string, SQLiteColumn>;
    this.#each = columnsOf(table).filter(([key]) => !separate.has(key));
    this.#same = same.map((key): Field => [key, columns[key] as SQLiteColumn]);
    const names = [...this.#each, ...this.#same].map(([, { name }]) => name);
    const values = [...this.#each.map(valueAt), ...same.map((_, index) => `?${index + 2}`)];
    const namesOf = (keys: WriterOptions<Table, Same, Lacks>['keeps']) =>
      keys?.map((key) => columns[key as string]?.name);
    const kept = namesOf(keeps);
    this.#sql = `INSERT INTO ${getTableConfig(table).name} (${names.join(', ')})
      SELECT ${values.join(', ')} FROM json_each(?1) WHERE true ${kept === undefined ? '' : upsert(namesOf(key) ?? keyOf(table), names, kept)}`;
  }

  /** A single row that fits into one argument. */
  one(row: Omit<NewRowOf<Table>, Same | Lacks>): InStatement {
    return { sql: this.#sql, args: [stringifyWellFormed([this.#cells(row)])] };
  }

  /** @param same values that the rows have in common */
  rows<T>(
    values: readonly T[],
    toRow: (value: T) => Omit<NewRowOf<Table>, Same | Lacks>,
    ...[same]: [Same] extends [never] ? [] : [same: Pick<NewRowOf<Table>, Same>]
  ): Generator<InStatement> {
    const args = this.#same.map(([key, column]) => {
      const value = (same as Record<string, unknown> | undefined)?.[key];
      return isJson(column) ? stringifyWellFormed(value) : (cell(value) as InValue);
    });
    return chunkStatements(values, this.#sql, (value) => this.#cells(toRow(value)), { args });
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

/** `->` returns JSON, `->>` an SQL value. */
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
 * Makes text storable in a text column: libSQL truncates it at a NUL when reading. JSON columns escape it. Half
 * surrogate pairs, which would crash libSQL, never get here, because all input is made well-formed.
 */
export function columnText(value: string): string {
  return value.includes('\0') ? value.replaceAll('\0', '\uFFFD') : value;
}
