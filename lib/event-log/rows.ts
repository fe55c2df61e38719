import type { Row as Columns, InValue } from '@libsql/client';
import { columnText } from '@/db/column-text';
import { AGENT_ROW, OBLIGATION_ROW, SESSION_ROW, TASK_ROW } from '@/db/fleet-rows';
import { LOG_COLUMNS, logLineFromRow } from '@/db/log-rows';
import { events } from '@/db/schema';
import { shapeOf } from '@/db/table-rows';
import type { LogLine } from '@/lib/protocol/read-models';

/** Rows as they stand in the database, by the statements that read them after a position. */

export interface EventRow extends ReturnType<typeof EVENT.read> {
  kind: 'event';
  /** JSON of the AG-UI event. */
  payload: string;
}

export interface LogRow {
  kind: 'log';
  position: number;
  agentId: string;
  line: LogLine;
}

/** A row of the fleet: its newest version, at the position of its last change. */
export interface FleetRow {
  kind: 'session' | 'agent' | 'task' | 'obligation';
  position: number;
  columns: Columns;
}

export type Row = EventRow | LogRow | FleetRow;

export interface RowLimits {
  /** Most rows of one statement. */
  rows: number;
  /** Most bytes of text of one statement, give or take one row: a record may have a megabyte. */
  bytes: number;
}

export interface RowStatement {
  sql: string;
  args: InValue[];
  /** Null where what is found is no row, but says how far others have looked. */
  toRow: ((columns: Columns) => Row) | null;
  /** The position up to which everything was found; null when that is all there is. */
  endOf: (found: readonly Columns[]) => number | null;
}

const EVENT = shapeOf(events, 'position', 'sessionId', 'agentId', 'seq', 'occurredAt', 'receivedAt');
const EVENTS = {
  table: 'events',
  columns: `${EVENT.columns()}, payload`,
  text: 'payload',
  order: 'position',
};
const LINES = { table: 'log_lines', columns: LOG_COLUMNS, text: 'message', order: 'position' };

export function eventsOfSession(sessionId: string, after: number, limits: RowLimits): RowStatement {
  const which = 'session_id = ? AND position > ?';
  return bounded(EVENTS, which, [columnText(sessionId), after], limits, toEvent);
}

/** One range for all sessions. `+` keeps SQLite from seeking each session and sorting what it found. */
export function eventsOfSessions(sessionIds: readonly string[], after: number, limits: RowLimits): RowStatement {
  const which = 'position > ? AND +session_id IN (SELECT value FROM json_each(?))';
  return bounded(EVENTS, which, [after, JSON.stringify(sessionIds)], limits, toEvent);
}

export function linesOfAgent(agentId: string, after: number, limits: RowLimits): RowStatement {
  return bounded(LINES, 'agent_id = ? AND position > ?', [columnText(agentId), after], limits, toLine);
}

export function linesOfAgents(agentIds: readonly string[], after: number, limits: RowLimits): RowStatement {
  const which = 'position > ? AND +agent_id IN (SELECT value FROM json_each(?))';
  return bounded(LINES, which, [after, JSON.stringify(agentIds)], limits, toLine);
}

/** What the projections remember of a session is no reader's business. */
const FLEET = {
  session: { table: 'sessions', columns: SESSION_ROW.columns() },
  agent: { table: 'agents', columns: AGENT_ROW.columns() },
  task: { table: 'tasks', columns: `${TASK_ROW.columns()}, updated_position` },
  obligation: { table: 'obligations', columns: `${OBLIGATION_ROW.columns()}, updated_position` },
} as const;

const source = (kind: FleetRow['kind']) => ({ ...FLEET[kind], text: 'body', order: 'updated_position' });

/** What has changed, whatever it is by now: for whoever knew everything up to there. */
export function changedRows(kind: FleetRow['kind'], after: number, limits: RowLimits): RowStatement {
  return bounded(source(kind), 'updated_position > ?', [after], limits, fleetRow(kind));
}

/** How many changed rows one statement looks through for those to be told: they are told apart by the index alone. */
const SPAN = 4096;
/** Of the tasks that have ended, the newest are told to everybody. */
const RECENT_TASKS = 500;
const REPLAYED = {
  task: {
    index: 'tasks_by_change',
    isOpen: `status = 'running'`,
    recentAfter: `ifnull((SELECT updated_position FROM tasks WHERE updated_position > 0 ORDER BY updated_position DESC
      LIMIT 1 OFFSET ${RECENT_TASKS - 1}), 0) - 1`,
  },
  obligation: { index: 'obligations_by_change', isOpen: `state = 'owed'`, recentAfter: `${Number.MAX_SAFE_INTEGER}` },
} as const;

/** What somebody who catches up page by page may believe to be open. */
export interface Replay {
  /** Where it resumed: it knew what was open there. */
  from: number;
  /** The oldest state that a page so far was read from: what was open there may have been told as open. */
  toldOf: number;
}

/**
 * Of the tasks or obligations that have changed, those that somebody who resumes must hear of: what is open, the ends of
 * what may have been open where it resumes (it was there by then), what has changed since an earlier page may have told of
 * it, what is recent, and all of some sessions. What began and ended in between, nobody waits for.
 *
 * @param sessionIds the sessions whose rows come whole: somebody looks at them
 */
export function replayedRows(
  kind: keyof typeof REPLAYED,
  after: number,
  { from, toldOf }: Replay,
  sessionIds: readonly string[],
  limits: RowLimits,
): RowStatement[] {
  const { table } = FLEET[kind];
  const { index, isOpen, recentAfter } = REPLAYED[kind];
  const span = `SELECT updated_position FROM ${table} WHERE updated_position > ? ORDER BY updated_position LIMIT ${SPAN}`;
  const which = `updated_position > ? AND updated_position <= (SELECT max(updated_position) FROM (${span}))
    AND (${isOpen} OR position <= ? OR updated_position > ? OR updated_position > ${recentAfter}
      OR session_id IN (SELECT value FROM json_each(?)))`;
  const args = [after, after, from, toldOf, JSON.stringify(sessionIds.map(columnText))];
  return [
    bounded({ ...source(kind), index }, which, args, limits, fleetRow(kind)),
    {
      sql: `SELECT count(*) AS seen, max(updated_position) AS reached FROM (${span})`,
      args: [after],
      toRow: null,
      endOf: ([found]) => (Number(found?.seen ?? 0) < SPAN ? null : Number(found?.reached)),
    },
  ];
}

function fleetRow(kind: FleetRow['kind']): (columns: Columns) => FleetRow {
  return (columns) => ({ kind, position: Number(columns.updated_position), columns });
}

/** Where rows stand, in which order they are read, and which of their columns holds their text. */
interface RowSource {
  table: string;
  columns: string;
  text: string;
  order: string;
  index?: string;
}

/**
 * Ends a statement's rows where their text grows beyond the limit; the first row always comes. Nothing is read of those
 * behind it: what they are is looked up only of those that come.
 */
function bounded(
  { table, columns, text, order, index }: RowSource,
  which: string,
  args: InValue[],
  limits: RowLimits,
  toRow: (columns: Columns) => Row,
): RowStatement {
  const listed = columns.split(', ').map((column) => `found.${column}`);
  return {
    sql: `SELECT ${listed.join(', ')}, size_so_far FROM (
      SELECT id_of_row, size, SUM(size) OVER (ORDER BY place ROWS UNBOUNDED PRECEDING) AS size_so_far FROM (
        SELECT rowid AS id_of_row, ${order} AS place, octet_length(${text}) AS size
        FROM ${table}${index === undefined ? '' : ` INDEXED BY ${index}`} WHERE ${which} ORDER BY ${order} LIMIT ?
      )
    ) AS sized CROSS JOIN ${table} AS found ON found.rowid = sized.id_of_row WHERE size_so_far - size < ?`,
    args: [...args, limits.rows, limits.bytes],
    toRow,
    endOf: (found) => {
      const last = found.at(-1);
      const isCutOff = found.length >= limits.rows || Number(last?.size_so_far ?? 0) >= limits.bytes;
      return isCutOff && last !== undefined ? toRow(last).position : null;
    },
  };
}

function toEvent(row: Columns): EventRow {
  return { kind: 'event', ...EVENT.read(row), payload: String(row.payload) };
}

function toLine(row: Columns): LogRow {
  return { kind: 'log', position: Number(row.position), agentId: String(row.agent_id), line: logLineFromRow(row) };
}
