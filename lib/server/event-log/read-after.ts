import { SERVER_PRODUCER_ID } from '@interlude/protocol/envelope';
import type { LogLine } from '@interlude/protocol/read-models';
import type { Scope } from '@interlude/protocol/scope';
import type { Row as Columns, InValue } from '@libsql/client';
import type { Database } from '@/db/client';
import { LOG_COLUMNS, logLineFromRow } from '@/db/log-rows';
import { AGENT_ROW, INBOX_ROW, OBLIGATION_ROW, SESSION_ROW, TASK_ROW } from '@/db/read-model-rows';
import { events } from '@/db/schema';
import { agentsIn, listedSessionsIn, positionIn, sessionsIn } from '@/db/scope-sql';
import { columnText, shapeOf } from '@/db/table-rows';

/** What a reader listens to. */
export interface TopicFilter {
  fleet: boolean;
  sessionIds: readonly string[];
  agentIds: readonly string[];
  /** The part of the fleet whose rows are read. Whoever asks for sessions and logs has looked that they are in it. */
  scope: Scope;
}

export interface RowPage {
  /** In position order. */
  rows: Row[];
  /** Everything wanted in (after, upTo] is in `rows`; of tasks, obligations and inbox items, what replayedRows selects. */
  upTo: number;
  /** Nothing wanted lies between `upTo` and `newest`. */
  complete: boolean;
  /** The newest commit that this read saw. */
  newest: number;
  /** The newest change of a row of the fleet that had been removed by then. */
  removedUpTo: number;
}

/**
 * `near`: one range over everything since `after`, for the tailer. A replay: one seek per topic, for catching up; of the
 * fleet's tasks, obligations and inbox items, only those that a resuming reader must hear of.
 */
export type ReadMode = 'near' | Replay;

/** The replay of a reader that resumes after a position, before its first page. */
export function replayFrom(after: number): Replay {
  return { from: after, openSince: Number.MAX_SAFE_INTEGER };
}

/** The same after a page: what was open when the page was read may have been told as open. */
export function replayBehind({ from, openSince }: Replay, { newest }: RowPage): Replay {
  return { from, openSince: Math.min(openSince, newest) };
}

/** With less than this per topic, a page of many topics could be nearly empty. */
const MIN_TOPIC_BYTES = 64 * 1024;

/**
 * Reads what is wanted after a position, over all kinds of rows, in one read transaction.
 *
 * Ordering: by position. If a limit cuts off one statement's rows, the page ends there for all statements.
 * Failure: throws what the database throws; nothing is remembered, so the same call can be made again.
 *
 * A reader that goes on from `upTo` misses nothing even if rows it has passed change meanwhile: deltas fold into the row
 * of the last one and fleet rows move to a greater position, so it meets both again further on, complete.
 */
export async function readAfter(
  database: Database,
  wanted: TopicFilter,
  after: number,
  reach: ReadMode,
  limits: RowLimits,
): Promise<RowPage> {
  const statements = statementsFor(wanted, after, reach, limits);
  const [counter, ...results] = await (reach === 'near' ? database.tail : database.reader).batch(
    ['SELECT position, removed_up_to FROM counter', ...statements.map(({ sql, args }) => ({ sql, args }))],
    'read',
  );
  const newest = Math.max(after, Number(counter?.rows[0]?.position ?? 0));
  let upTo = newest;
  const rows: Row[] = [];
  for (const [index, statement] of statements.entries()) {
    const found = results[index]?.rows ?? [];
    if (statement.toRow !== null) for (const columns of found) rows.push(statement.toRow(columns));
    upTo = Math.min(upTo, statement.endOf(found) ?? upTo);
  }
  const page = upTo < newest ? rows.filter((row) => row.position <= upTo) : rows;
  if (statements.length > 1) page.sort((a, b) => a.position - b.position);
  const removedUpTo = Number(counter?.rows[0]?.removed_up_to ?? 0);
  return { rows: page, upTo, complete: upTo === newest, newest, removedUpTo };
}

/** The positions between which a stream can be resumed. */
export interface Bounds {
  /** Whoever has what came up to here misses nothing. Retention has removed some of what came before, unless it is 0. */
  oldest: number;
  /** The newest position that the reader may know of, 0 when nothing was ever written. */
  latest: number;
  /** The newest there is. */
  newest: number;
  /** The newest change of a row of the fleet that has been removed; 0 where none is asked for. */
  removedUpTo: number;
}

/** @param wanted retention removes the events of each session by itself, and rows of the fleet from all of it */
export async function readBounds({ reader }: Database, { scope, sessionIds, fleet }: TopicFilter): Promise<Bounds> {
  const removed = {
    sql: `SELECT max(removed_up_to) AS position FROM json_each(?) AS wanted CROSS JOIN sessions AS s ON s.id = wanted.value`,
    args: [JSON.stringify(sessionIds)],
  };
  const ofFleet = { sql: 'SELECT removed_up_to AS position FROM counter WHERE ?', args: [fleet ? 1 : 0] };
  const own = scope.kind === 'everything' ? [] : [positionIn(scope)];
  const found = await reader.batch(['SELECT position FROM counter', removed, ofFleet, ...own], 'read');
  const [newest = 0, cut = 0, removedUpTo = 0, latest = newest] = found.map(({ rows }) =>
    Number(rows[0]?.position ?? 0),
  );
  // what was removed may be of others: whoever has all of their own misses nothing
  const oldest = Math.max(cut, Math.min(removedUpTo, latest));
  return { oldest, latest, newest, removedUpTo };
}

function statementsFor(wanted: TopicFilter, after: number, reach: ReadMode, limits: RowLimits): RowStatement[] {
  const { sessionIds, agentIds, scope } = wanted;
  const topics = sessionIds.length + agentIds.length;
  const each = { ...limits, bytes: Math.max(MIN_TOPIC_BYTES, Math.floor(limits.bytes / Math.max(1, topics))) };
  const statements: RowStatement[] = [];
  for (const [topic, ids] of [['session', sessionIds] as const, ['logs', agentIds] as const]) {
    if (reach !== 'near') for (const id of ids) statements.push(topicRows(topic, id, after, each));
    else if (ids.length > 0) statements.push(rowsOfTopics(topic, ids, after, limits));
  }
  if (wanted.fleet) {
    const fleet = { ...limits, bytes: Math.max(MIN_TOPIC_BYTES, limits.bytes) };
    for (const kind of ['session', 'agent'] as const) statements.push(changedRows(kind, scope, after, fleet));
    for (const kind of ['task', 'obligation', 'inbox'] as const) {
      if (reach === 'near') statements.push(changedRows(kind, scope, after, fleet));
      else statements.push(...replayedRows(kind, scope, after, reach, sessionIds, fleet));
    }
  }
  return statements;
}

/** Rows as they are in the database, and the statements that read them after a position. */

export interface EventRow extends ReturnType<typeof EVENT.read> {
  kind: 'event';
  /** JSON of the AG-UI event. */
  payload: string;
}

interface LogRow {
  kind: 'log';
  position: number;
  agentId: string;
  line: LogLine;
}

/** A row of the fleet: its newest version, at the position of its last change. */
interface FleetRow {
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

interface RowStatement {
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
function topicRows(topic: keyof typeof TOPICS, id: string, after: number, limits: RowLimits): RowStatement {
  const { source, key, toRow } = TOPICS[topic];
  return bounded(source, `${key} = ? AND position > ?`, [columnText(id), after], limits, toRow);
}

/** One range for all of them. `+` keeps SQLite from seeking each one and sorting the results. */
function rowsOfTopics(
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
function changedRows(kind: FleetRow['kind'], scope: Scope, after: number, limits: RowLimits): RowStatement {
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
interface Replay {
  /** Where it resumed: it knew what was open there. */
  from: number;
  /** The oldest position at which a page was read: it may have told as open what was open there. */
  openSince: number;
}

/**
 * The changed tasks, obligations or inbox items that a resuming reader must hear of: what is open, what has ended since and existed
 * where it resumed, what has changed since an earlier page may have told of it, what is recent, and everything in some
 * sessions. What both began and ended in between is left out: no reader waits for it.
 *
 * @param sessionIds the sessions of which all rows are sent, because somebody is looking at them
 */
function replayedRows(
  kind: keyof typeof REPLAYED,
  scope: Scope,
  after: number,
  { from, openSince }: Replay,
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
  const args = [after, after, from, openSince, JSON.stringify(sessionIds.map(columnText))];
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
