import { EXIT, type ExitCode } from '@interlude/runner/cli/exit';
import { print } from '@interlude/runner/cli/table';
import { databaseErrorCode, databaseFault, firstLine } from '@/db/database-error';
import { schemaState } from '@/db/migrate';
import type { Reader } from '@/db/reader';
import { ReadQueue } from '@/db/reader';
import { checkAudit } from '@/lib/server/access/read-audit';
import { quoted, tablesOf } from './copied-table';
import { INVARIANTS, type Invariant } from './invariants';
import { nameOf, openToRead, type Place } from './place';
import { Progress } from './progress';
import { timeText } from './sizes';

const RESTORE = 'put a backup in its place, or copy what can be read with "interlude db copy"';
const TELL = 'rows are not as Interlude writes them: keep a backup of this state and report it';

/**
 * Looks whether the database is sound, and prints a line for each finding.
 *
 * In pieces: the pages of one table after the other, and rows by ranges of their keys. Each is a read of its own, so that
 * no log of writes has to be kept for the length of all of it, and nobody waits. What the dashboard writes meanwhile is
 * either in a piece or not, and every invariant holds within each commit.
 */
export async function check(place: Place): Promise<ExitCode> {
  const begunAt = performance.now();
  const { reader, close } = await openToRead(place);
  const progress = new Progress();
  let count = 0;
  const say = (line: string) => {
    progress.end();
    count += 1;
    print(line);
  };
  try {
    const { tables, entries } = await findAll(reader, say, (what) => progress.tell(() => what));
    progress.end();
    const looked = `${tables} tables, ${entries} entries of the audit; ${timeText(performance.now() - begunAt)}`;
    if (count === 0) print(`${nameOf(place)} is sound: ${looked}`);
    else print(`${nameOf(place)} has ${count} finding${count === 1 ? '' : 's'}: ${looked}`);
    return count === 0 ? EXIT.done : EXIT.failed;
  } finally {
    progress.end();
    close();
  }
}

type Say = (line: string) => void;

async function findAll(reader: Reader, say: Say, told: Say): Promise<{ tables: number; entries: string }> {
  const state = await schemaState(reader);
  const advice = SCHEMA[state];
  if (advice !== null) say(`schema: ${advice}`);
  const tables = await tablesOf(reader);
  let isDamaged = false;
  for (const name of ['sqlite_schema', ...tables.map((table) => table.name), ...(await searchTables(reader))]) {
    told(`pages of ${name}`);
    for (const what of await damageOf(reader, name)) {
      isDamaged = true;
      say(`pages of ${name}: ${what}; stop Interlude and ${RESTORE}`);
    }
  }
  // what a damaged file says of its rows proves nothing, and another version's rows have other rules
  if (isDamaged || (state !== 'current' && state !== 'ahead')) return { tables: tables.length, entries: 'no' };
  const broken = await reader.execute('PRAGMA foreign_key_check');
  if (broken.rows.length > 0) say(`foreign keys: ${broken.rows.length} rows point at nothing; ${TELL}`);
  for (const invariant of INVARIANTS) {
    await hold(reader, invariant, say, told);
  }
  told('the audit');
  const { entries, brokenAt, removed } = await checkAudit({ reader, reads: new ReadQueue() });
  if (brokenAt !== null) {
    say(
      `audit: entry ${brokenAt} does not follow from the one before: it was changed, or one was taken out. Compare it with an export that was kept elsewhere`,
    );
  }
  const counted = entries.toLocaleString('en');
  return {
    tables: tables.length,
    entries: removed === null ? counted : `from number ${removed.upTo + 1} on ${counted}`,
  };
}

const SCHEMA = {
  current: null,
  ahead: null,
  behind: 'tables of this version are missing; start Interlude once, or run "npm run db:migrate"',
  newer: 'it was written by a newer Interlude; update this one',
  foreign: 'it was written by an earlier Interlude, whose tables this one can’t take over; begin with a new database',
  unfinished: 'it is a copy that was cut off; copy to it again, or remove it',
} as const;

async function searchTables(reader: Reader): Promise<string[]> {
  const { rows } = await reader.execute(
    "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL%' ORDER BY name",
  );
  return rows.map(({ name }) => String(name));
}

/** Also of its indexes. A page that can't even be read ends the statement. */
async function damageOf(reader: Reader, table: string): Promise<string[]> {
  try {
    const { rows } = await reader.execute(`PRAGMA integrity_check(${quoted(table)})`);
    return rows
      .map(({ integrity_check: found }) => String(found).replaceAll(/\s*\n\s*/g, ' '))
      .filter((found) => found !== 'ok');
  } catch (error) {
    if (databaseFault(error) !== 'damaged') throw error;
    return [`it can't be read (${databaseErrorCode(error)}, ${firstLine(error)})`];
  }
}

/** Told of one invariant at most. */
const MAX_TOLD = 5;

async function hold(reader: Reader, invariant: Invariant, say: Say, told: Say): Promise<void> {
  const { name, sql, next, what } = invariant;
  let found = 0;
  for (let after: number | null = -1; after !== null; ) {
    told(`${name}, after ${after}`);
    const bound: number | null = next === null ? null : await endOf(reader, next, after);
    const { rows } = await reader.execute(next === null ? sql : { sql, args: { after, until: bound } });
    for (const row of rows) {
      found += 1;
      if (found <= MAX_TOLD) say(`${name}: ${what(row)}; ${TELL}`);
    }
    after = bound;
  }
  if (found > MAX_TOLD) say(`${name}: ${(found - MAX_TOLD).toLocaleString('en')} more like it`);
}

/** @returns the key with which a piece ends; null if there is none */
async function endOf(
  reader: Reader,
  { table, key, rows: count }: NonNullable<Invariant['next']>,
  after: number,
): Promise<number | null> {
  const { rows } = await reader.execute({
    sql: `SELECT max(at) AS at FROM (SELECT ${key} AS at FROM ${table} WHERE ${key} > ? ORDER BY ${key} LIMIT ${count})`,
    args: [after],
  });
  const at = rows[0]?.at ?? null;
  return at === null ? null : Number(at);
}
