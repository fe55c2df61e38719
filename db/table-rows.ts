import type { InStatement, InValue, Row } from '@libsql/client';
import { getTableColumns } from 'drizzle-orm';
import { getTableConfig, type SQLiteColumn, type SQLiteTable } from 'drizzle-orm/sqlite-core';
import { stringifyWellFormed } from '@/lib/protocol/well-formed';
import { columnText } from './column-text';
import { inPieces } from './json-pieces';
import type { ResultRows } from './reader';

/**
 * How rows go out of tables and in: SQL is written by hand, where it can be measured and explained, and the schema says
 * what its rows are. Nothing else turns a column into a value, or a value into a column.
 */

type RowOf<Table extends SQLiteTable> = Table['$inferSelect'];
type NewRowOf<Table extends SQLiteTable> = Table['$inferInsert'];

/** Some columns of a table: what a SELECT names, and what its rows are then. */
export interface Shape<T> {
  /** Their names, for a SELECT; `as` where a table has another name there. */
  columns(as?: string): string;
  /** @throws SyntaxError for JSON that is damaged */
  read(row: Row): T;
  all(result: ResultRows | undefined): T[];
  first(result: ResultRows | undefined): T | undefined;
}

/** @param keys the columns; all of them unless given */
export function shapeOf<
  Table extends SQLiteTable,
  Key extends keyof RowOf<Table> & string = keyof RowOf<Table> & string,
>(table: Table, ...keys: Key[]): Shape<Pick<RowOf<Table>, Key>> {
  const listed = keys.length > 0 ? keys : Object.keys(getTableColumns(table));
  const fields = chosen(table, listed).map(([key, column]) => ({ key, name: column.name, column }));
  const read = (row: Row) => {
    const values: Record<string, unknown> = {};
    for (const { key, name, column } of fields) {
      const value = row[name];
      if (value === undefined) throw new TypeError(`The column ${name} was not selected`);
      values[key] = value === null ? null : column.mapFromDriverValue(value);
    }
    return values as Pick<RowOf<Table>, Key>;
  };
  return {
    columns: (as) => fields.map(({ name }) => (as === undefined ? name : `${as}.${name}`)).join(', '),
    read,
    all: (result) => (result?.rows ?? []).map(read),
    first: (result) => {
      const row = result?.rows[0];
      return row === undefined ? undefined : read(row);
    },
  };
}

export interface WriterOptions<Table extends SQLiteTable, Same> {
  /** Columns that have the same value in all rows of one call. */
  same?: readonly Same[];
  /** Of a row that is there already, these columns stay. Unless given, such a row is an error. */
  keeps?: readonly (keyof NewRowOf<Table>)[];
}

/**
 * A statement that writes rows of a table, as many as there are: they go in as one JSON argument.
 *
 * Failure: text is made storable, see `columnText`; a JSON column takes its value whole, escapes and all.
 */
export class RowWriter<
  Table extends SQLiteTable,
  Key extends keyof NewRowOf<Table> & string,
  Same extends keyof NewRowOf<Table> & string = never,
> {
  readonly #sql: string;
  readonly #each: readonly Field[];
  readonly #same: readonly Same[];

  /** @param keys the columns that are written, each with a value of every row's own */
  constructor(table: Table, keys: readonly Key[], { same = [], keeps }: WriterOptions<Table, Same> = {}) {
    this.#same = same;
    this.#each = chosen(table, keys).map(([key, column]) => ({ key, isJson: isJson(column) }));
    const each = chosen(table, keys).map(([, column]) => column);
    const alike = chosen(table, same).map(([, column]) => column);
    const names = [...each, ...alike].map(({ name }) => name);
    const values = [...each.map(valueAt), ...same.map((_, at) => `?${at + 2}`)];
    const onConflict =
      keeps === undefined ? '' : upsert(table, names, new Set(chosen(table, keeps as string[]).map(nameOf)));
    this.#sql = `INSERT INTO ${getTableConfig(table).name} (${names.join(', ')})
      SELECT ${values.join(', ')} FROM json_each(?1) WHERE true ${onConflict}`;
  }

  /** A single row, which is no larger than what one argument may hold. */
  one(row: Pick<NewRowOf<Table>, Key>): InStatement {
    return { sql: this.#sql, args: [stringifyWellFormed([this.#cells(row)])] };
  }

  /** @param same what all of them have in common */
  rows<T>(
    values: readonly T[],
    toRow: (value: T) => Pick<NewRowOf<Table>, Key>,
    ...[same]: [Same] extends [never] ? [] : [same: Pick<NewRowOf<Table>, Same>]
  ): Generator<InStatement> {
    const args = this.#same.map((key) => cell((same as Record<string, unknown> | undefined)?.[key]) as InValue);
    return inPieces(
      values,
      (json) => ({ sql: this.#sql, args: [json, ...args] }),
      (value) => this.#cells(toRow(value)),
    );
  }

  #cells(row: Record<string, unknown>): unknown[] {
    return this.#each.map(({ key, isJson }) => (isJson ? row[key] : cell(row[key])));
  }
}

interface Field {
  key: string;
  isJson: boolean;
}

function chosen(table: SQLiteTable, keys: readonly string[]): [key: string, column: SQLiteColumn][] {
  const columns = getTableColumns(table) as Record<string, SQLiteColumn>;
  return keys.map((key) => [key, columns[key] as SQLiteColumn]);
}

function nameOf([, { name }]: [string, SQLiteColumn]): string {
  return name;
}

function isJson({ dataType }: SQLiteColumn): boolean {
  return dataType === 'json';
}

/** `->` hands JSON on as it is, `->>` a value of SQL. */
function valueAt(column: SQLiteColumn, at: number): string {
  if (!isJson(column)) return `value->>${at}`;
  return column.notNull ? `value->${at}` : `nullif(value->${at}, 'null')`;
}

function upsert(table: SQLiteTable, names: readonly string[], kept: ReadonlySet<string>): string {
  const { columns, primaryKeys } = getTableConfig(table);
  const own = columns.filter(({ primary }) => primary);
  const key = (own.length > 0 ? own : (primaryKeys[0]?.columns ?? [])).map(({ name }) => name);
  const changed = names.filter((name) => !key.includes(name) && !kept.has(name));
  return `ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${changed.map((name) => `${name} = excluded.${name}`).join(', ')}`;
}

function cell(value: unknown): unknown {
  if (value === undefined) return null;
  return typeof value === 'string' ? columnText(value) : value;
}
