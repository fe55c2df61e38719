import { CliError, EXIT, type ExitCode, print, printNotice } from '@interlude/runner/cli/command';
import type { InStatement, InValue, Row } from '@libsql/client';
import { databaseErrorCode } from '@/db/database-error';
import { schemaState, UNFINISHED } from '@/db/migrate';
import type { Reader, Snapshot } from '@/db/reader';
import { failWhere } from '@/db/writes';
import { type CopyTarget, type DatabaseLocation, locationName, openTarget, openToRead } from './database-location';
import { formatDuration, Progress } from './progress';

/**
 * Copies a snapshot of a whole database into an empty one of the same or another kind.
 *
 * Ordering: before its first row, the target is marked unfinished, in a place that every version checks before it uses
 * a database. After all rows were counted on both sides, the transaction that adds triggers and migrations removes the
 * mark.
 * Failure: a dashboard that already runs on the empty target can't write once it is marked (`requireAllowed`). Every
 * reader refuses an interrupted copy, also as a source; copying to it again starts over.
 */
export async function copy(from: DatabaseLocation, to: DatabaseLocation): Promise<ExitCode> {
  const startedAt = performance.now();
  const { tables, rows } = await copyDatabase(from, to);
  print(
    `${locationName(to)}: ${rows.toLocaleString('en')} rows of ${tables} tables in ${formatDuration(performance.now() - startedAt)}, a copy of ${locationName(from)}`,
  );
  return EXIT.done;
}

/** Tables written last, together with the removal of the mark. */
const LEDGER = '__drizzle_migrations';
const WRITTEN_LAST: readonly string[] = [LEDGER, 'compatibility'];

export async function copyDatabase(
  from: DatabaseLocation,
  to: DatabaseLocation,
  { isOurDraft = false } = {},
): Promise<{ tables: number; rows: number }> {
  const { reader, close } = await openToRead(from);
  try {
    await requireCurrent(reader, from);
    const target = openTarget(to);
    try {
      const mark = await prepare(target, to, isOurDraft);
      // one snapshot for all tables
      const snapshot = await reader.transaction('read');
      try {
        return await copyAll(snapshot, target, mark);
      } finally {
        snapshot.close();
      }
    } finally {
      await target.close();
    }
  } finally {
    close();
  }
}

async function requireCurrent(reader: Reader, place: DatabaseLocation): Promise<void> {
  const state = await schemaState(reader);
  if (state === 'current') return;
  const why = {
    behind: 'lacks tables of this version. Start it once with this version, or run: npm run db:migrate',
    ahead: 'was migrated by a newer Interlude. Copy it with that version',
    newer: 'was written by a newer Interlude. Copy it with that version',
    foreign: 'was written by an earlier Interlude, which this one can’t copy',
    unfinished: 'is an interrupted copy. Copy its original source instead',
  }[state];
  throw new CliError(EXIT.failed, `the database ${locationName(place)} ${why}`);
}

/** Creates our tables and marks the target unfinished. @returns the mark */
async function prepare(target: CopyTarget, place: DatabaseLocation, isOurDraft: boolean): Promise<string> {
  const mark = `${UNFINISHED} ${crypto.randomUUID()}`;
  const { rows } = await target.execute(
    "SELECT count(*) AS tables FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!' AND name NOT LIKE 'libsql!_%' ESCAPE '!'",
  );
  const isNew = Number(rows[0]?.tables) === 0;
  const state = isNew ? 'behind' : await schemaState(target);
  if (isNew) await target.migrate();
  else if (state !== 'current' && state !== 'unfinished') throw notEmpty(place);
  const tables = await tablesOf(target);
  if (state === 'unfinished' && !isOurDraft)
    printNotice(`${locationName(place)} holds an interrupted copy; starting over`);
  const triggers = await target.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'");
  const begin: InStatement[] = [
    { sql: `DELETE FROM ${LEDGER} WHERE hash LIKE ?`, args: [`${UNFINISHED}%`] },
    // newer than any version, so no version accepts the database
    { sql: `INSERT INTO ${LEDGER} (hash, created_at) VALUES (?, ?)`, args: [mark, Number.MAX_SAFE_INTEGER] },
    'DELETE FROM compatibility',
    // no triggers yet, because the rows they wrote are copied like all others
    ...triggers.rows.map(({ name }) => `DROP TRIGGER ${quoted(String(name))}`),
  ];
  try {
    await target.write(state === 'unfinished' ? begin : [...requireEmpty(tables), ...begin]);
  } catch (error) {
    throw databaseErrorCode(error)?.startsWith('SQLITE_CONSTRAINT') ? notEmpty(place) : error;
  }
  for (const { name } of tables) if (!WRITTEN_LAST.includes(name)) await target.write([`DELETE FROM ${quoted(name)}`]);
  return mark;
}

/** Tables with coordination state of running processes, which is meaningless in a copy. */
const PROCESS_TABLES: readonly string[] = ['commits', 'leases', 'touched'];
/** Tables that may have rows in an empty database: those seeded by migrations, and PROCESS_TABLES. */
const SEEDED: readonly string[] = [...WRITTEN_LAST, ...PROCESS_TABLES, 'access', 'counter'];

/** Fails the marking transaction if a table has a row, because a dashboard may have started on the target meanwhile. */
function requireEmpty(tables: readonly CopiedTable[]): InStatement[] {
  const ours = tables.filter(({ name }) => !SEEDED.includes(name) && !/_search_/.test(name));
  return ours.map(({ name }) => failWhere(`EXISTS (SELECT 1 FROM ${quoted(name)})`));
}

function notEmpty(place: DatabaseLocation): CliError {
  return new CliError(EXIT.failed, `the database ${locationName(place)} is not empty; copy to a new one`);
}

async function copyAll(
  snapshot: Snapshot,
  target: CopyTarget,
  mark: string,
): Promise<{ tables: number; rows: number }> {
  const tables = await tablesOf(snapshot);
  const targetNames = new Set((await tablesOf(target)).map(({ name }) => name));
  const foreign = tables.find(({ name }) => !targetNames.has(name));
  if (foreign !== undefined)
    throw new CliError(
      EXIT.failed,
      `the table ${foreign.name} does not belong to Interlude; remove it, then copy again`,
    );
  const progress = new Progress();
  let total = 0;
  try {
    for (const table of tables) {
      if (WRITTEN_LAST.includes(table.name) || PROCESS_TABLES.includes(table.name)) continue;
      const report = (rows: number) =>
        progress.report(
          () =>
            `${table.name}: ${rows.toLocaleString('en')} rows copied (${(total + rows).toLocaleString('en')} in all)`,
        );
      total += await copyTable(snapshot, target, table, report);
    }
  } finally {
    progress.clear();
  }
  await target.settle();
  total += await finish(snapshot, target, tables, mark);
  return { tables: tables.length, rows: total };
}

/** @returns the number of copied rows */
async function copyTable(
  snapshot: Snapshot,
  target: CopyTarget,
  table: CopiedTable,
  report: (rows: number) => void,
): Promise<number> {
  let copied = 0;
  for (let page = await readPage(snapshot, table, null); page.rows.length > 0; ) {
    // reads the next page while writing this one
    const [, next] = await Promise.all([
      target.write(insertRows(table, page.rows)),
      readPage(snapshot, table, page.next),
    ]);
    copied += page.rows.length;
    report(copied);
    page = next;
  }
  const [sourceCount, targetCount] = [await countOf(snapshot, table), await countOf(target, table)];
  if (copied !== sourceCount || targetCount !== sourceCount) {
    const counts = `${sourceCount} rows at the source, ${copied} read, ${targetCount} at the target`;
    throw new CliError(
      EXIT.failed,
      `${table.name} was not copied completely: ${counts}; another process writes to the target. Copy to another one`,
    );
  }
  return copied;
}

async function countOf(database: Pick<CopyTarget, 'execute'>, { name }: CopiedTable): Promise<number> {
  const { rows } = await database.execute(`SELECT count(*) AS count FROM ${quoted(name)}`);
  return Number(rows[0]?.count);
}

/** One transaction: without the mark, the copy is complete. */
async function finish(
  snapshot: Snapshot,
  target: CopyTarget,
  tables: readonly CopiedTable[],
  mark: string,
): Promise<number> {
  const triggers = await snapshot.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger' ORDER BY rowid");
  const last: InStatement[] = [];
  let rows = 0;
  for (const table of tables.filter(({ name }) => WRITTEN_LAST.includes(name))) {
    const page = await readPage(snapshot, table, null);
    rows += page.rows.length;
    last.push(`DELETE FROM ${quoted(table.name)}`, ...insertRows(table, page.rows));
  }
  // fails and rolls back if another copy has replaced the mark with its own
  const ours = failWhere(`NOT EXISTS (SELECT 1 FROM ${LEDGER} WHERE hash = ?)`, [mark]);
  try {
    await target.write([ours, ...last, ...triggers.rows.map(({ sql }) => String(sql))]);
  } catch (error) {
    if (!databaseErrorCode(error)?.startsWith('SQLITE_CONSTRAINT')) throw error;
    throw new CliError(EXIT.failed, 'another copy to the same target has started; choose another target');
  }
  return rows;
}

/** Maximum bytes per page, because a server's responses are limited to a few MiB. */
const MAX_ROWS = 500;
const MAX_BYTES = 1024 * 1024;
/** Below the limit of bound parameters in every SQLite build. */
const MAX_ARGUMENTS = 900;

/** A table to copy, row by row in key order. */
interface CopiedTable {
  name: string;
  columns: readonly string[];
  /** Unique key; `rowid` except for tables without one. */
  key: readonly string[];
}

interface CopyPage {
  rows: readonly Row[];
  /** Key after which to continue; null after the last page. */
  next: readonly InValue[] | null;
}

/**
 * Ordinary tables, and the shadow tables of search tables, because the search tables' own content can't be selected.
 */
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
 * The next rows of a table: columns as `c0`, `c1`, …, the key as `k0`, …. Rowids are text, because search tables exceed
 * JavaScript's safe integers.
 */
async function readPage(
  snapshot: Pick<Snapshot, 'execute'>,
  table: CopiedTable,
  after: readonly InValue[] | null,
): Promise<CopyPage> {
  const { rows } = await snapshot.execute(
    table.key[0] === 'rowid' ? pageByRowid(table, after) : pageByKey(table, after),
  );
  const last = rows.at(-1);
  return { rows, next: last === undefined ? null : table.key.map((_, index) => last[`k${index}`] as InValue) };
}

function pageByRowid({ name, columns }: CopiedTable, after: readonly InValue[] | null): InStatement {
  const bytes = columns.map((column) => `ifnull(octet_length(${quoted(column)}), 0)`).join(' + ');
  // as many rows as fit MAX_BYTES, at least one
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

/** Smallest rowid; only search tables have negative ones. */
const FIRST = '-9223372036854775808';

function pageByKey({ name, columns, key }: CopiedTable, after: readonly InValue[] | null): InStatement {
  const names = key.map(quoted).join(', ');
  const keys = key.map((column, index) => `${quoted(column)} AS k${index}`).join(', ');
  const beyond = after === null ? '' : `WHERE (${names}) > (${key.map(() => '?').join(', ')})`;
  return {
    sql: `SELECT ${keys}, ${selected(name, columns)} FROM ${quoted(name)} ${beyond} ORDER BY ${names} LIMIT ${MAX_ROWS}`,
    args: after === null ? [] : after.map(bindable),
  };
}

function selected(table: string, columns: readonly string[]): string {
  const isLarge = (column: string) => isSegmentId(table, column);
  return columns
    .map((column, index) => `${isLarge(column) ? `CAST(${quoted(column)} AS TEXT)` : quoted(column)} AS c${index}`)
    .join(', ');
}

function insertRows({ name, columns }: CopiedTable, rows: readonly Row[]): InStatement[] {
  const atOnce = Math.max(1, Math.floor(MAX_ARGUMENTS / columns.length));
  const places = columns.map((column) => (isSegmentId(name, column) ? 'CAST(? AS INTEGER)' : '?')).join(', ');
  const into = `INSERT INTO ${quoted(name)} (${columns.map(quoted).join(', ')}) VALUES `;
  return Array.from({ length: Math.ceil(rows.length / atOnce) }, (_, page) => {
    const batch = rows.slice(page * atOnce, (page + 1) * atOnce);
    return {
      sql: into + batch.map(() => `(${places})`).join(', '),
      args: batch.flatMap((row) => columns.map((_, index) => bindable(row[`c${index}`] as InValue))),
    };
  });
}

/** Deletions push segment ids of a search index beyond JavaScript's safe integers. */
function isSegmentId(table: string, column: string): boolean {
  return column === 'id' && table.endsWith('_search_data');
}

/** Converts values for binding: an untyped column would store a number as REAL, and local files only accept buffers. */
function bindable(value: InValue): InValue {
  if (value instanceof ArrayBuffer) return Buffer.from(value);
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : value;
}

export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
