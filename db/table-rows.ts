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
/** Every column has a value: what has a default is named in `lacks`, or given. */
type NewRowOf<Table extends SQLiteTable> = Required<Table['$inferInsert']>;

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

/** The same of all columns but some. */
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
  Same extends keyof NewRowOf<Table> & string = never,
  Lacks extends keyof NewRowOf<Table> & string = never,
> {
  readonly #sql: string;
  readonly #each: readonly Field[];
  readonly #same: readonly Field[];

  constructor(table: Table, { same = [], lacks = [], keeps }: WriterOptions<Table, Same, Lacks> = {}) {
    const apart = new Set<string>([...same, ...lacks]);
    const columns = getTableColumns(table) as Record<string, SQLiteColumn>;
    this.#each = columnsOf(table).filter(([key]) => !apart.has(key));
    this.#same = same.map((key): Field => [key, columns[key] as SQLiteColumn]);
    const names = [...this.#each, ...this.#same].map(([, { name }]) => name);
    const values = [...this.#each.map(valueAt), ...same.map((_, at) => `?${at + 2}`)];
    const kept = keeps?.map((key) => columns[key as string]?.name);
    this.#sql = `INSERT INTO ${getTableConfig(table).name} (${names.join(', ')})
      SELECT ${values.join(', ')} FROM json_each(?1) WHERE true ${kept === undefined ? '' : upsert(table, names, kept)}`;
  }

  /** A single row, which is no larger than what one argument may hold. */
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
    return inPieces(
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

function upsert(table: SQLiteTable, names: readonly string[], kept: readonly (string | undefined)[]): string {
  const { columns, primaryKeys } = getTableConfig(table);
  const own = columns.filter(({ primary }) => primary);
  const key = (own.length > 0 ? own : (primaryKeys[0]?.columns ?? [])).map(({ name }) => name);
  const changed = names.filter((name) => !key.includes(name) && !kept.includes(name));
  return `ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${changed.map((name) => `${name} = excluded.${name}`).join(', ')}`;
}

function cell(value: unknown): unknown {
  if (value === undefined) return null;
  return typeof value === 'string' ? columnText(value) : value;
}
