import { EXIT, type ExitCode, print } from '@interlude/runner/cli/command';
import type { Row } from '@libsql/client';
import { databaseErrorCode, databaseFault, firstLine } from '@/db/database-error';
import { schemaState } from '@/db/migrate';
import { type Reader, ReadQueue } from '@/db/reader';
import { checkAudit } from '@/lib/server/access/audit-log';
import { quoted, tablesOf } from './copy-database';
import { type DatabaseLocation, locationName, openToRead } from './database-location';
import { formatDuration, Progress } from './progress';

const RESTORE = 'restore a backup, or save what is readable with "interlude db copy"';
const REPORT = 'Interlude never writes such rows: back up this state and report it';

/**
 * Verifies the database and prints one line per finding.
 *
 * Works in pieces (the pages of one table, or a range of rows), each in its own read transaction, so the WAL stays
 * short and no writer waits. Concurrent commits are safe, because every invariant holds after each commit.
 */
export async function check(place: DatabaseLocation): Promise<ExitCode> {
  const startedAt = performance.now();
  const { reader, close } = await openToRead(place);
  const progress = new Progress();
  let count = 0;
  const finding = (line: string) => {
    progress.clear();
    count += 1;
    print(line);
  };
  try {
    const { tables, entries } = await findAll(reader, finding, (line) => progress.report(() => line));
    progress.clear();
    const scope = `${tables} tables, ${entries} audit entries; ${formatDuration(performance.now() - startedAt)}`;
    if (count === 0) print(`${locationName(place)} is sound: ${scope}`);
    else print(`${locationName(place)} has ${count} finding${count === 1 ? '' : 's'}: ${scope}`);
    return count === 0 ? EXIT.done : EXIT.failed;
  } finally {
    progress.clear();
    close();
  }
}

type Print = (line: string) => void;

async function findAll(reader: Reader, finding: Print, progress: Print): Promise<{ tables: number; entries: string }> {
  const state = await schemaState(reader);
  const advice = SCHEMA[state];
  if (advice !== null) finding(`schema: ${advice}`);
  const tables = await tablesOf(reader);
  let isDamaged = false;
  for (const name of ['sqlite_schema', ...tables.map((table) => table.name), ...(await searchTables(reader))]) {
    progress(`pages of ${name}`);
    for (const error of await integrityErrors(reader, name)) {
      isDamaged = true;
      finding(`pages of ${name}: ${error}; stop Interlude and ${RESTORE}`);
    }
  }
  // the rows of a damaged file prove nothing, and other versions have other invariants
  if (isDamaged || (state !== 'current' && state !== 'ahead')) return { tables: tables.length, entries: 'no' };
  const broken = await reader.execute('PRAGMA foreign_key_check');
  if (broken.rows.length > 0) finding(`foreign keys: ${broken.rows.length} rows reference missing rows; ${REPORT}`);
  for (const invariant of INVARIANTS) {
    await checkInvariant(reader, invariant, finding, progress);
  }
  progress('audit chain');
  const { entries, brokenAt, removed } = await checkAudit({ reader, reads: new ReadQueue() });
  if (brokenAt !== null) {
    finding(
      `audit: entry ${brokenAt} doesn't match its predecessor: an entry was changed or deleted. Compare it with an export stored elsewhere`,
    );
  }
  const counted = entries.toLocaleString('en');
  return {
    tables: tables.length,
    entries: removed === null ? counted : `${counted} (from number ${removed.upTo + 1})`,
  };
}

const SCHEMA = {
  current: null,
  ahead: null,
  behind: 'tables of this version are missing; start Interlude once, or run "npm run db:migrate"',
  newer: 'written by a newer Interlude; update this one',
  foreign: 'written by an earlier Interlude that this one can’t migrate; start with a new database',
  unfinished: 'an interrupted copy (cut off); copy to it again, or delete it',
} as const;

async function searchTables(reader: Reader): Promise<string[]> {
  const { rows } = await reader.execute(
    "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL%' ORDER BY name",
  );
  return rows.map(({ name }) => String(name));
}

/** Findings of the integrity check for a table and its indexes. An unreadable page ends the statement. */
async function integrityErrors(reader: Reader, table: string): Promise<string[]> {
  try {
    const { rows } = await reader.execute(`PRAGMA integrity_check(${quoted(table)})`);
    return rows
      .map(({ integrity_check: found }) => String(found).replaceAll(/\s*\n\s*/g, ' '))
      .filter((found) => found !== 'ok');
  } catch (error) {
    if (databaseFault(error) !== 'damaged') throw error;
    return [`can't be read (${databaseErrorCode(error)}, ${firstLine(error)})`];
  }
}

/** Findings printed per invariant. */
const MAX_PRINTED = 5;

async function checkInvariant(reader: Reader, invariant: Invariant, finding: Print, progress: Print): Promise<void> {
  const { name, sql, next, describe } = invariant;
  let found = 0;
  for (let after: number | null = -1; after !== null; ) {
    progress(`${name}, after ${after}`);
    const bound: number | null = next === null ? null : await pieceEnd(reader, next, after);
    const { rows } = await reader.execute(next === null ? sql : { sql, args: { after, until: bound } });
    for (const row of rows) {
      found += 1;
      if (found <= MAX_PRINTED) finding(`${name}: ${describe(row)}; ${REPORT}`);
    }
    after = bound;
  }
  if (found > MAX_PRINTED) finding(`${name}: ${(found - MAX_PRINTED).toLocaleString('en')} more`);
}

/** @returns the last key of the piece; null for none */
async function pieceEnd(
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

/** A condition on rows that holds after every commit. */
interface Invariant {
  name: string;
  /** Selects violations; with `next`, those with keys in (`:after`, `:until`]. */
  sql: string;
  /** Table to check in pieces; null for a single query. */
  next: { table: string; key: string; rows: number } | null;
  describe: (row: Row) => string;
}

/** Size of a piece, which takes a few tens of milliseconds. */
const ROWS = 2_000;

const inRange = (key: string) => `${key} > :after AND ${key} <= :until`;
const by = (table: string, key = 'position', rows = ROWS) => ({ table, key, rows });
const quote = (value: unknown) => JSON.stringify(value);

/**
 * Tables with a position column, or with the position of each row's last change. All are indexed except a few small
 * ones.
 */
const POSITIONED: readonly (readonly [table: string, column: string])[] = [
  ['events', 'position'],
  ['log_lines', 'position'],
  ['insights', 'position'],
  ['quarantine', 'position'],
  ['sessions', 'updated_position'],
  ['agents', 'updated_position'],
  ['tasks', 'updated_position'],
  ['obligations', 'updated_position'],
  ['inbox', 'updated_position'],
  ['webhook_deliveries', 'position'],
];

export const INVARIANTS: readonly Invariant[] = [
  {
    name: 'removed audit entries',
    sql: 'SELECT number FROM audit WHERE number <= (SELECT max(number) FROM audit_start) ORDER BY number LIMIT 1',
    next: null,
    describe: ({ number }) => `audit entry ${number} is recorded as removed but exists`,
  },
  {
    name: 'asks',
    sql: `SELECT a.session_id AS session, a.command_id AS id FROM asks AS a LEFT JOIN commands AS c ON c.id = a.command_id
      WHERE ${inRange('a.rowid')} AND a.command_id IS NOT NULL AND c.id IS NULL`,
    next: by('asks', 'rowid'),
    describe: ({ session, id }) => `command ${quote(id)} requested in session ${quote(session)} is missing`,
  },
  {
    name: 'counter',
    sql: `SELECT * FROM (${POSITIONED.map(
      ([table, column]) =>
        `SELECT '${table}' AS name, max(${column}) AS newest, (SELECT ifnull(max(position), 0) FROM counter) AS counted FROM ${table}`,
    ).join(' UNION ALL ')}) WHERE newest > counted`,
    next: null,
    describe: ({ name, newest, counted }) => `${name} has position ${newest}, but the counter is at ${counted}`,
  },
  ...(['log_lines', 'quarantine'] as const).map((other) => ({
    name: 'positions',
    sql: `SELECT one.position AS position FROM ${other} AS one JOIN events AS other ON other.position = one.position
      WHERE ${inRange('one.position')}`,
    next: by(other),
    describe: ({ position }: Row) => `position ${position} is used by an event and a row of ${other}`,
  })),
  {
    name: 'producers',
    sql: `SELECT e.producer_id AS id, max(e.seq) AS seq, e.epoch AS epoch, p.last_seq AS last_seq, p.epoch AS newest
      FROM events AS e LEFT JOIN producers AS p ON p.id = e.producer_id
      WHERE ${inRange('e.position')} AND (p.id IS NULL OR e.epoch > p.epoch OR (e.epoch = p.epoch AND e.seq > p.last_seq))
      GROUP BY e.producer_id, e.epoch`,
    next: by('events'),
    describe: ({ id, seq, epoch, last_seq: last, newest }) =>
      last === null
        ? `outbox ${quote(id)} has events but no producer row`
        : `outbox ${quote(id)} has event ${seq} of epoch ${epoch}, but its producer row ends at ${last} of ${newest}: events would be stored twice`,
  },
  {
    name: 'sessions',
    sql: `SELECT s.id AS id, s.agent_id AS agent FROM sessions AS s LEFT JOIN agents AS a ON a.id = s.agent_id
      WHERE ${inRange('s.number')} AND a.id IS NULL`,
    next: by('sessions', 'number'),
    describe: ({ id, agent }) => `agent ${quote(agent)} of session ${quote(id)} is missing`,
  },
  {
    name: 'events',
    sql: `SELECT e.session_id AS id, count(*) AS count FROM events AS e LEFT JOIN sessions AS s ON s.id = e.session_id
      WHERE ${inRange('e.position')} AND s.id IS NULL GROUP BY e.session_id`,
    next: by('events'),
    describe: ({ id, count }) => `session ${quote(id)} of ${count} events is missing`,
  },
  {
    name: 'turns of events',
    // retention may be removing the turns in pieces
    sql: `SELECT e.session_id AS session, e.turn_id AS turn, count(*) AS count FROM events AS e
      LEFT JOIN turns AS t ON t.session_id = e.session_id AND t.id = e.turn_id
      LEFT JOIN sessions AS s ON s.id = e.session_id
      WHERE ${inRange('e.position')} AND e.turn_id IS NOT NULL AND e.turn_id NOT LIKE 'task:%' AND t.id IS NULL
        AND e.position > ifnull(s.removed_up_to, 0)
      GROUP BY e.session_id, e.turn_id`,
    next: by('events'),
    describe: ({ session, turn, count }) =>
      `turn ${quote(turn)} of ${count} events in session ${quote(session)} is missing`,
  },
  ...(['turns', 'tasks', 'obligations'] as const).map((table) => ({
    name: table,
    sql: `SELECT t.session_id AS id, count(*) AS count FROM ${table} AS t LEFT JOIN sessions AS s ON s.id = t.session_id
      WHERE ${inRange('t.rowid')} AND s.id IS NULL GROUP BY t.session_id`,
    next: by(table, 'rowid'),
    describe: ({ id, count }: Row) => `session ${quote(id)} of ${count} ${table} is missing`,
  })),
  {
    name: 'removed turns',
    sql: `SELECT t.session_id AS session, count(*) AS count FROM turns AS t JOIN sessions AS s ON s.id = t.session_id
      WHERE ${inRange('t.rowid')} AND t.position <= s.removed_up_to GROUP BY t.session_id`,
    next: by('turns', 'rowid'),
    describe: ({ session, count }) => `${count} turns of session ${quote(session)} are recorded as removed but exist`,
  },
  {
    name: 'turns of tasks',
    sql: `SELECT k.session_id AS session, k.id AS id, e.value AS turn FROM tasks AS k,
        json_each(json_array(k.body->>'$.startedInTurnId', k.body->>'$.answeredInTurnId')) AS e
      LEFT JOIN turns AS t ON t.session_id = k.session_id AND t.id = e.value
      WHERE ${inRange('k.rowid')} AND e.value IS NOT NULL AND t.id IS NULL`,
    next: by('tasks', 'rowid', 500),
    describe: ({ session, id, turn }) =>
      `turn ${quote(turn)} of task ${quote(id)} in session ${quote(session)} is missing`,
  },
  {
    name: 'log lines',
    sql: `SELECT l.agent_id AS id, max(l.line) AS line, g.last_line AS last FROM log_lines AS l
      LEFT JOIN agent_logs AS g ON g.agent_id = l.agent_id
      WHERE ${inRange('l.position')} AND (g.agent_id IS NULL OR l.line > g.last_line) GROUP BY l.agent_id`,
    next: by('log_lines'),
    describe: ({ id, line, last }) => `the log of ${quote(id)} has line ${line}, but should end at ${last}`,
  },
  {
    name: 'log index',
    sql: `SELECT c.id AS id FROM log_chunks AS c LEFT JOIN log_search_docsize AS d ON d.id = c.id
      WHERE ${inRange('c.id')} AND d.id IS NULL`,
    next: by('log_chunks', 'id'),
    describe: ({ id }) => `chunk ${id} is missing from the search index`,
  },
  {
    name: 'attachments',
    sql: `SELECT a.session_id AS session, a.hash AS hash, a.bytes AS bytes, ifnull(sum(octet_length(p.bytes)), 0) AS kept
      FROM attachments AS a LEFT JOIN attachment_parts AS p ON p.session_id = a.session_id AND p.hash = a.hash
      WHERE ${inRange('a.rowid')} GROUP BY a.session_id, a.hash HAVING kept <> a.bytes`,
    next: by('attachments', 'rowid', 100),
    describe: ({ session, hash, bytes, kept }) =>
      `attachment ${quote(hash)} of session ${quote(session)} has ${kept} of ${bytes} bytes`,
  },
];
