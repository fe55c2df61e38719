import type { InStatement, InValue, Row } from '@libsql/client';
import type { Snapshot } from '@/db/reader';

/** What of it is read at once: a server answers no more than a few MiB. */
const MAX_ROWS = 500;
const MAX_BYTES = 1024 * 1024;
/** Below what every SQLite takes as arguments of one statement. */
const MAX_ARGUMENTS = 900;

/** A table as it is copied: row by row, in the order of its key. */
export interface CopiedTable {
  name: string;
  columns: readonly string[];
  /** What its rows are told apart by; `rowid` but for tables that have none. */
  key: readonly string[];
}

export interface CopyPage {
  rows: readonly Row[];
  /** Where the next page begins; null after the last. */
  next: readonly InValue[] | null;
}

/** Every table with rows of its own, and what stands behind the search tables: what is in those can't be asked for. */
export async function tablesOf(reader: Pick<Snapshot, 'execute'>): Promise<CopiedTable[]> {
  const { rows } = await reader.execute(
    `SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'
      AND name NOT LIKE 'libsql!_%' ESCAPE '!' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name`,
  );
  const tables: CopiedTable[] = [];
  for (const { name, sql } of rows) {
    const columns = await reader.execute({
      sql: 'SELECT name, pk FROM pragma_table_info(?) ORDER BY cid',
      args: [String(name)],
    });
    const hasRowid = !/\bWITHOUT\s+ROWID\b/i.test(String(sql));
    const keyed = columns.rows
      .filter(({ pk }) => Number(pk) > 0)
      .sort((one, other) => Number(one.pk) - Number(other.pk));
    tables.push({
      name: String(name),
      columns: columns.rows.map((column) => String(column.name)),
      key: hasRowid ? ['rowid'] : keyed.map((column) => String(column.name)),
    });
  }
  return tables;
}

/**
 * The next rows of a table. Each has its columns as `c0`, `c1`, … and its key as `k0`, …: integers of a key as text,
 * because some of the search tables' are more than JavaScript can hold.
 */
export async function readPage(
  snapshot: Pick<Snapshot, 'execute'>,
  table: CopiedTable,
  after: readonly InValue[] | null,
): Promise<CopyPage> {
  const { rows } = await snapshot.execute(
    table.key[0] === 'rowid' ? pageByRowid(table, after) : pageByKey(table, after),
  );
  const last = rows.at(-1);
  return { rows, next: last === undefined ? null : table.key.map((_, at) => last[`k${at}`] as InValue) };
}

function pageByRowid({ name, columns }: CopiedTable, after: readonly InValue[] | null): InStatement {
  const bytes = columns.map((column) => `ifnull(octet_length(${quoted(column)}), 0)`).join(' + ');
  // as many as are not too long together, and at least one
  return {
    sql: `SELECT CAST(rowid AS TEXT) AS k0, ${selected(name, columns)} FROM ${quoted(name)}
      WHERE rowid > CAST(?1 AS INTEGER) AND rowid <= (
        SELECT max(k) FROM (SELECT k, sum(bytes) OVER (ORDER BY k) - bytes AS before FROM (
          SELECT rowid AS k, ${bytes} AS bytes FROM ${quoted(name)}
            WHERE rowid > CAST(?1 AS INTEGER) ORDER BY rowid LIMIT ${MAX_ROWS}
        )) WHERE before < ${MAX_BYTES}
      ) ORDER BY rowid`,
    args: [after?.[0] ?? FIRST],
  };
}

/** Below every rowid that there is: none of ours is negative but those of search tables. */
const FIRST = '-9223372036854775808';

function pageByKey({ name, columns, key }: CopiedTable, after: readonly InValue[] | null): InStatement {
  const names = key.map(quoted).join(', ');
  const keys = key.map((column, at) => `${quoted(column)} AS k${at}`).join(', ');
  const beyond = after === null ? '' : `WHERE (${names}) > (${key.map(() => '?').join(', ')})`;
  return {
    sql: `SELECT ${keys}, ${selected(name, columns)} FROM ${quoted(name)} ${beyond} ORDER BY ${names} LIMIT ${MAX_ROWS}`,
    args: after === null ? [] : after.map(asKept),
  };
}

function selected(table: string, columns: readonly string[]): string {
  const isHuge = (column: string) => isIdOfData(table, column);
  return columns
    .map((column, at) => `${isHuge(column) ? `CAST(${quoted(column)} AS TEXT)` : quoted(column)} AS c${at}`)
    .join(', ');
}

/** What puts rows into the same table elsewhere. */
export function insertRows({ name, columns }: CopiedTable, rows: readonly Row[]): InStatement[] {
  const atOnce = Math.max(1, Math.floor(MAX_ARGUMENTS / columns.length));
  const places = columns.map((column) => (isIdOfData(name, column) ? 'CAST(? AS INTEGER)' : '?')).join(', ');
  const into = `INSERT INTO ${quoted(name)} (${columns.map(quoted).join(', ')}) VALUES `;
  return Array.from({ length: Math.ceil(rows.length / atOnce) }, (_, page) => {
    const several = rows.slice(page * atOnce, (page + 1) * atOnce);
    return {
      sql: into + several.map(() => `(${places})`).join(', '),
      args: several.flatMap((row) => columns.map((_, at) => asKept(row[`c${at}`] as InValue))),
    };
  });
}

/** The rows of a search table's index are numbered beyond what JavaScript can hold once one was deleted. */
function isIdOfData(table: string, column: string): boolean {
  return column === 'id' && table.endsWith('_search_data');
}

/** A number would be kept as a real one in a column that says nothing of its type, and a file takes buffers only. */
function asKept(value: InValue): InValue {
  if (value instanceof ArrayBuffer) return Buffer.from(value);
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : value;
}

export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
