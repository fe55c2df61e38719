import { CliError, EXIT, type ExitCode } from '@interlude/runner/cli/exit';
import { say } from '@interlude/runner/cli/say';
import { print } from '@interlude/runner/cli/table';
import type { InStatement } from '@libsql/client';
import { databaseErrorCode } from '@/db/database-error';
import { schemaState, UNFINISHED } from '@/db/migrate';
import type { Reader, Snapshot } from '@/db/reader';
import { failWhere } from '@/db/writes';
import { type CopiedTable, insertRows, quoted, readPage, tablesOf } from './copied-table';
import { type CopyTarget, openTarget } from './copy-target';
import { nameOf, openToRead, type Place } from './place';
import { Progress } from './progress';
import { timeText } from './sizes';

/**
 * Copies a whole database, of one moment, into an empty one of the same or another kind.
 *
 * Ordering: the target is marked as unfinished, in what every version looks at before it uses a database, before it gets
 * its first row. The mark goes in the transaction that brings the triggers and the list of migrations, after every row
 * was counted on both sides.
 * Failure: a dashboard that runs on the target, empty as it is, is told from the mark on that it may not write: see
 * db/may-write. A copy that was cut off is refused by whoever opens it, and by another copy of it. A copy to it begins anew:
 * what it has is nobody's but the copy's.
 */
export async function copy(from: Place, to: Place): Promise<ExitCode> {
  const begunAt = performance.now();
  const { tables, rows } = await copyDatabase(from, to);
  print(
    `${nameOf(to)}: ${rows.toLocaleString('en')} rows of ${tables} tables in ${timeText(performance.now() - begunAt)}, a copy of ${nameOf(from)}`,
  );
  return EXIT.done;
}

/** What is written last, by the mark's end. */
const LEDGER = '__drizzle_migrations';
const LAST: readonly string[] = [LEDGER, 'compatibility'];

export async function copyDatabase(
  from: Place,
  to: Place,
  { isOurDraft = false } = {},
): Promise<{ tables: number; rows: number }> {
  const { reader, close } = await openToRead(from);
  try {
    await requireCurrent(reader, from);
    const target = openTarget(to);
    try {
      const mark = await prepare(target, to, isOurDraft);
      // one moment for all of it
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

async function requireCurrent(reader: Reader, place: Place): Promise<void> {
  const state = await schemaState(reader);
  if (state === 'current') return;
  const why = {
    behind: 'lacks tables of this version. Start it once with this version, or run: npm run db:migrate',
    ahead: 'was migrated by a newer Interlude. Copy it with that one',
    newer: 'was written by a newer Interlude. Copy it with that one',
    foreign: 'was written by an earlier Interlude, whose tables this one can’t copy',
    unfinished: 'is itself a copy that was cut off. Copy what it was copied from',
  }[state];
  throw new CliError(EXIT.failed, `the database ${nameOf(place)} ${why}`);
}

/**
 * Makes our tables, empty, and marks them.
 * @returns the mark
 */
async function prepare(target: CopyTarget, place: Place, isOurDraft: boolean): Promise<string> {
  const mark = `${UNFINISHED} ${crypto.randomUUID()}`;
  const { rows } = await target.execute(
    "SELECT count(*) AS tables FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!' AND name NOT LIKE 'libsql!_%' ESCAPE '!'",
  );
  const isNew = Number(rows[0]?.tables) === 0;
  const state = isNew ? 'behind' : await schemaState(target);
  if (isNew) await target.migrate();
  else if (state !== 'current' && state !== 'unfinished') throw notEmpty(place);
  const tables = await tablesOf(target);
  if (state === 'unfinished' && !isOurDraft) say(`${nameOf(place)} holds a copy that was cut off; it begins anew`);
  const triggers = await target.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'");
  const begin: InStatement[] = [
    { sql: `DELETE FROM ${LEDGER} WHERE hash LIKE ?`, args: [`${UNFINISHED}%`] },
    // newer than whatever any version knows, so that none takes it for its own
    { sql: `INSERT INTO ${LEDGER} (hash, created_at) VALUES (?, ?)`, args: [mark, Number.MAX_SAFE_INTEGER] },
    'DELETE FROM compatibility',
    // what they would do is copied
    ...triggers.rows.map(({ name }) => `DROP TRIGGER ${quoted(String(name))}`),
  ];
  try {
    await target.write(state === 'unfinished' ? begin : [...requireEmpty(tables), ...begin]);
  } catch (error) {
    throw databaseErrorCode(error)?.startsWith('SQLITE_CONSTRAINT') ? notEmpty(place) : error;
  }
  for (const { name } of tables) if (!LAST.includes(name)) await target.write([`DELETE FROM ${quoted(name)}`]);
  return mark;
}

/** What processes that write to a database leave for each other: no use elsewhere, and written by whoever has it open. */
const PROCESSES: readonly string[] = ['commits', 'leases', 'touched'];
/** Where something may be in a database that is empty: what a migration puts there, and the above. */
const SEEDED: readonly string[] = [...LAST, ...PROCESSES, 'access', 'counter'];

/** Fail where there is a row, in the transaction of the mark: a dashboard may run on what was empty a moment ago. */
function requireEmpty(tables: readonly CopiedTable[]): InStatement[] {
  const ours = tables.filter(({ name }) => !SEEDED.includes(name) && !/_search_/.test(name));
  return ours.map(({ name }) => failWhere(`EXISTS (SELECT 1 FROM ${quoted(name)})`));
}

function notEmpty(place: Place): CliError {
  return new CliError(
    EXIT.failed,
    `the database ${nameOf(place)} is not empty, and is not written over; copy to a new one`,
  );
}

async function copyAll(
  snapshot: Snapshot,
  target: CopyTarget,
  mark: string,
): Promise<{ tables: number; rows: number }> {
  const tables = await tablesOf(snapshot);
  const there = new Set((await tablesOf(target)).map(({ name }) => name));
  const strange = tables.find(({ name }) => !there.has(name));
  if (strange !== undefined)
    throw new CliError(EXIT.failed, `the table ${strange.name} is none of Interlude’s; remove it, then copy again`);
  const progress = new Progress();
  let total = 0;
  try {
    for (const table of tables) {
      if (LAST.includes(table.name) || PROCESSES.includes(table.name)) continue;
      const told = (rows: number) =>
        progress.tell(
          () =>
            `${table.name}: ${rows.toLocaleString('en')} rows copied (${(total + rows).toLocaleString('en')} in all)`,
        );
      total += await copyTable(snapshot, target, table, told);
    }
  } finally {
    progress.end();
  }
  await target.settle();
  total += await finish(snapshot, target, tables, mark);
  return { tables: tables.length, rows: total };
}

/** @returns how many rows there were */
async function copyTable(
  snapshot: Snapshot,
  target: CopyTarget,
  table: CopiedTable,
  told: (rows: number) => void,
): Promise<number> {
  let copied = 0;
  for (let page = await readPage(snapshot, table, null); page.rows.length > 0; ) {
    // the next page is read while this one is written
    const [, next] = await Promise.all([
      target.write(insertRows(table, page.rows)),
      readPage(snapshot, table, page.next),
    ]);
    copied += page.rows.length;
    told(copied);
    page = next;
  }
  const [here, there] = [await countOf(snapshot, table), await countOf(target, table)];
  if (copied !== here || there !== here) {
    const what = `${here} rows at the source, ${copied} read, ${there} at the target`;
    throw new CliError(
      EXIT.failed,
      `${table.name} was not copied whole: ${what}; somebody else writes to the target. Copy to another one`,
    );
  }
  return copied;
}

async function countOf(database: Pick<CopyTarget, 'execute'>, { name }: CopiedTable): Promise<number> {
  const { rows } = await database.execute(`SELECT count(*) AS count FROM ${quoted(name)}`);
  return Number(rows[0]?.count);
}

/** In one transaction: whoever finds the mark gone finds everything. */
async function finish(
  snapshot: Snapshot,
  target: CopyTarget,
  tables: readonly CopiedTable[],
  mark: string,
): Promise<number> {
  const triggers = await snapshot.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger' ORDER BY rowid");
  const last: InStatement[] = [];
  let rows = 0;
  for (const table of tables.filter(({ name }) => LAST.includes(name))) {
    const page = await readPage(snapshot, table, null);
    rows += page.rows.length;
    last.push(`DELETE FROM ${quoted(table.name)}`, ...insertRows(table, page.rows));
  }
  // another copy to the same place has its own mark there: then this fails, and undoes the rest
  const ours = failWhere(`NOT EXISTS (SELECT 1 FROM ${LEDGER} WHERE hash = ?)`, [mark]);
  try {
    await target.write([ours, ...last, ...triggers.rows.map(({ sql }) => String(sql))]);
  } catch (error) {
    if (!databaseErrorCode(error)?.startsWith('SQLITE_CONSTRAINT')) throw error;
    throw new CliError(EXIT.failed, 'another copy to the same place began meanwhile; copy to another one');
  }
  return rows;
}
