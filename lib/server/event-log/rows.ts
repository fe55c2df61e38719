import { SERVER_PRODUCER_ID } from '@interlude/protocol/envelope';
import type { LogLine } from '@interlude/protocol/read-models';
import type { Scope } from '@interlude/protocol/scope';
import type { Row as Columns, InValue } from '@libsql/client';
import { columnText } from '@/db/column-text';
import { AGENT_ROW, INBOX_ROW, OBLIGATION_ROW, SESSION_ROW, TASK_ROW } from '@/db/fleet-rows';
import { LOG_COLUMNS, logLineFromRow } from '@/db/log-rows';
import { events } from '@/db/schema';
import { agentsIn, listedSessionsIn, sessionsIn } from '@/db/scope-sql';
import { shapeOf } from '@/db/table-rows';

/** Rows as they are in the database, and the statements that read them after a position. */

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
  kind: 'session' | 'agent' | 'task' | 'obligation' | 'inbox';
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
  /** Null if the statement finds no rows, but how far another one has searched. */
  toRow: ((columns: Columns) => Row) | null;
  /** The position up to which everything was found; null if that is all there is. */
  endOf: (found: readonly Columns[]) => number | null;
}

const EVENT = shapeOf(
  events,
  'position',
  'sessionId',
  'agentId',
  'producerId',
  'seq',
  'occurredAt',
  'receivedAt',
  'turnId',
  'name',
);
const TOPICS = {
  session: {
    source: { table: 'events', columns: `${EVENT.columns()}, payload`, text: 'payload', order: 'position' },
    key: 'session_id',
    toRow: toEvent,
  },
  logs: {
    source: { table: 'log_lines', columns: LOG_COLUMNS, text: 'message', order: 'position' },
    key: 'agent_id',
    toRow: toLine,
  },
};

/** The events of one session, or the lines of one agent's log. */
export function topicRows(topic: keyof typeof TOPICS, id: string, after: number, limits: RowLimits): RowStatement {
  const { source, key, toRow } = TOPICS[topic];
  return bounded(source, `${key} = ? AND position > ?`, [columnText(id), after], limits, toRow);
}

/** One range for all of them. `+` keeps SQLite from seeking each one and sorting the results. */
export function rowsOfTopics(
  topic: keyof typeof TOPICS,
  ids: readonly string[],
  after: number,
  limits: RowLimits,
): RowStatement {
  const { source, key, toRow } = TOPICS[topic];
  const which = `position > ? AND +${key} IN (SELECT value FROM json_each(?))`;
  return bounded(source, which, [after, JSON.stringify(ids)], limits, toRow);
}

/** Without what the projections remember of a session, which readers don't need. */
const FLEET = {
  session: { table: 'sessions', columns: SESSION_ROW.columns() },
  agent: { table: 'agents', columns: AGENT_ROW.columns() },
  task: { table: 'tasks', columns: `${TASK_ROW.columns()}, updated_position` },
  obligation: { table: 'obligations', columns: `${OBLIGATION_ROW.columns()}, updated_position` },
  inbox: { table: 'inbox', columns: INBOX_ROW.columns() },
} as const;

const source = (kind: FleetRow['kind']) => ({ ...FLEET[kind], text: 'body', order: 'updated_position' });

/** What has changed since, as it is now: for readers that know everything up to that position. */
export function changedRows(kind: FleetRow['kind'], scope: Scope, after: number, limits: RowLimits): RowStatement {
  const which = `updated_position > ? AND ${inScope(kind, scope)}`;
  return bounded(source(kind), which, [after], limits, fleetRow(kind));
}

/** How many changed rows one statement searches for those to send: the index alone tells which they are. */
const SPAN = 4096;
/** How many of the tasks that ended last are sent to everybody. */
const RECENT_TASKS = 500;
const REPLAYED = {
  task: {
    index: 'tasks_by_change',
    isOpen: `status = 'running'`,
    recentAfter: (which: string) => `ifnull((SELECT updated_position FROM tasks WHERE updated_position > 0 AND ${which}
      ORDER BY updated_position DESC LIMIT 1 OFFSET ${RECENT_TASKS - 1}), 0) - 1`,
  },
  obligation: {
    index: 'obligations_by_change',
    isOpen: `state = 'owed'`,
    recentAfter: () => `${Number.MAX_SAFE_INTEGER}`,
  },
  inbox: { index: 'inbox_by_change', isOpen: 'done_at IS NULL', recentAfter: () => `${Number.MAX_SAFE_INTEGER}` },
} as const;

/** What a reader that catches up page by page may believe to be open. */
export interface Replay {
  /** Where it resumed: it knew what was open there. */
  from: number;
  /** The oldest position at which a page was read: it may have told as open what was open there. */
  toldOf: number;
}

/**
 * The changed tasks, obligations or inbox items that a resuming reader must hear of: what is open, what has ended since and existed
 * where it resumed, what has changed since an earlier page may have told of it, what is recent, and everything in some
 * sessions. What both began and ended in between is left out: no reader waits for it.
 *
 * @param sessionIds the sessions of which all rows are sent, because somebody is looking at them
 */
export function replayedRows(
  kind: keyof typeof REPLAYED,
  scope: Scope,
  after: number,
  { from, toldOf }: Replay,
  sessionIds: readonly string[],
  limits: RowLimits,
): RowStatement[] {
  const { table } = FLEET[kind];
  const { index, isOpen, recentAfter } = REPLAYED[kind];
  const span = `SELECT updated_position FROM ${table} WHERE updated_position > ? ORDER BY updated_position LIMIT ${SPAN}`;
  const own = inScope(kind, scope);
  const which = `${own} AND updated_position > ? AND updated_position <= (SELECT max(updated_position) FROM (${span}))
    AND (${isOpen} OR position <= ? OR updated_position > ? OR updated_position > ${recentAfter(own)}
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

/** As SQL; `isInScope` in the fan-out says the same of rows that were read for several readers. */
function inScope(kind: FleetRow['kind'], scope: Scope): string {
  if (kind === 'agent') return agentsIn(scope, 'id');
  return kind === 'session' ? listedSessionsIn(scope) : sessionsIn(scope, 'session_id');
}

function fleetRow(kind: FleetRow['kind']): (columns: Columns) => FleetRow {
  return (columns) => ({ kind, position: Number(columns.updated_position), columns });
}

/** A table, the order in which its rows are read, and the column that holds their text. */
interface RowSource {
  table: string;
  columns: string;
  text: string;
  order: string;
  index?: string;
}

/**
 * Cuts a statement's rows off where their text exceeds the limit; the first row always comes. The other columns are read
 * only for rows that come.
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
  const event = EVENT.read(row);
  // the server numbers what it says itself through for all agents: that would tell how much it does for others
  const seq = event.producerId === SERVER_PRODUCER_ID ? 0 : event.seq;
  return { kind: 'event', ...event, seq, payload: String(row.payload) };
}

function toLine(row: Columns): LogRow {
  return { kind: 'log', position: Number(row.position), agentId: String(row.agent_id), line: logLineFromRow(row) };
}
