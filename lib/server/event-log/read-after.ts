import { SERVER_PRODUCER_ID } from '@interlude/protocol/envelope';
import type { LogLine } from '@interlude/protocol/read-models';
import type { Scope } from '@interlude/protocol/scope';
import type { Row as Columns, InValue } from '@libsql/client';
import type { Database } from '@/db/client';
import { logColumns, logLineFromRow } from '@/db/log-rows';
import { AGENT_ROW, inboxColumns, OBLIGATION_ROW, SESSION_ROW, TASK_ROW } from '@/db/read-model-rows';
import { events } from '@/db/schema';
import { agentsIn, listedSessionsIn, positionIn, sessionsIn } from '@/db/scope-sql';
import { columnText, shapeOf } from '@/db/table-rows';

export interface TopicFilter {
  fleet: boolean;
  sessionIds: readonly string[];
  agentIds: readonly string[];
  /** Scope that limits the fleet rows. The caller has already checked access to the sessions and logs. */
  scope: Scope;
}

export interface RowPage {
  /** In position order. */
  rows: Row[];
  /** `rows` holds all rows in (after, upTo], except tasks, obligations and inbox items that `replayedRows` omits. */
  upTo: number;
  /** True if there are no rows between `upTo` and `newest`. */
  complete: boolean;
  /** The newest commit that this read saw. */
  newest: number;
  /** Position of the last change to fleet rows that retention had removed by then. */
  removedUpTo: number;
}

/**
 * `tail`, for the tailer: one range over everything after a position. A replay, for catching up: one seek per topic,
 * and only those tasks, obligations and inbox items that a resuming reader needs.
 */
export type ReadMode = 'tail' | Replay;

/** The replay for a reader that resumes after a position, before its first page. */
export function replayFrom(after: number): Replay {
  return { from: after, openSince: Number.MAX_SAFE_INTEGER };
}

/** The replay after a page. That page may have sent items as open that have closed since. */
export function replayAfterPage({ from, openSince }: Replay, { newest }: RowPage): Replay {
  return { from, openSince: Math.min(openSince, newest) };
}

/** Minimum text bytes per topic. With fewer, a page of many topics could be nearly empty. */
const MIN_TOPIC_BYTES = 64 * 1024;

/**
 * Reads the requested rows of all kinds after a position, in one read transaction.
 *
 * Ordering: by position. If a limit cuts off one statement's rows, the page ends there for all statements.
 * Failure: throws the database's errors. It keeps no state, so the call can be repeated.
 *
 * A reader that continues from `upTo` misses nothing, even if earlier rows change meanwhile: deltas fold into the row
 * of the last delta, and changed fleet rows move to a greater position, so the reader gets both again, complete.
 */
export async function readAfter(
  database: Database,
  filter: TopicFilter,
  after: number,
  mode: ReadMode,
  limits: RowLimits,
): Promise<RowPage> {
  const statements = statementsFor(filter, after, mode, limits);
  const [counter, ...results] = await (mode === 'tail' ? database.tail : database.reader).batch(
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

/** The range of positions from which a stream can resume. */
export interface Bounds {
  /** A reader that has everything up to this position misses nothing. 0 if retention has removed nothing. */
  oldest: number;
  /** The newest position that the reader may know; 0 for an empty database. */
  latest: number;
  newest: number;
  /** Position of the last change to removed fleet rows; 0 without the fleet topic. */
  removedUpTo: number;
}

/** Retention removes events per session, and fleet rows across all sessions. */
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
  // The removed rows may be out of the reader's scope: a reader that has all its own rows misses nothing.
  const oldest = Math.max(cut, Math.min(removedUpTo, latest));
  return { oldest, latest, newest, removedUpTo };
}

function statementsFor(filter: TopicFilter, after: number, mode: ReadMode, limits: RowLimits): RowStatement[] {
  const { sessionIds, agentIds, scope } = filter;
  const topics = sessionIds.length + agentIds.length;
  const each = { ...limits, bytes: Math.max(MIN_TOPIC_BYTES, Math.floor(limits.bytes / Math.max(1, topics))) };
  const statements: RowStatement[] = [];
  for (const [topic, ids] of [['session', sessionIds] as const, ['logs', agentIds] as const]) {
    if (mode !== 'tail') for (const id of ids) statements.push(topicRows(topic, id, after, each));
    else if (ids.length > 0) statements.push(rowsOfTopics(topic, ids, after, limits));
  }
  if (filter.fleet) {
    const fleet = { ...limits, bytes: Math.max(MIN_TOPIC_BYTES, limits.bytes) };
    for (const kind of ['session', 'agent'] as const) statements.push(changedRows(kind, scope, after, fleet));
    for (const kind of ['task', 'obligation', 'inbox'] as const) {
      if (mode === 'tail') statements.push(changedRows(kind, scope, after, fleet));
      else statements.push(...replayedRows(kind, scope, after, mode, sessionIds, fleet));
    }
  }
  return statements;
}

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

/** The newest version of a fleet row, at the position of its last change. */
interface FleetRow {
  kind: 'session' | 'agent' | 'task' | 'obligation' | 'inbox';
  position: number;
  columns: Columns;
}

export type Row = EventRow | LogRow | FleetRow;

export interface RowLimits {
  rows: number;
  /** Maximum text bytes per statement, exceeded by one row at most. A record may hold a megabyte. */
  bytes: number;
}

interface RowStatement {
  sql: string;
  args: InValue[];
  /** Null for a statement that only finds how far another statement has searched. */
  toRow: ((columns: Columns) => Row) | null;
  /** Position up to which the rows are complete; null if there are no more. */
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
    source: {
      table: 'events',
      columns: (as: string) => `${EVENT.columns(as)}, ${as}.payload`,
      text: 'payload',
      order: 'position',
    },
    key: 'session_id',
    toRow: toEvent,
  },
  logs: {
    source: { table: 'log_lines', columns: logColumns, text: 'message', order: 'position' },
    key: 'agent_id',
    toRow: toLine,
  },
};

function topicRows(topic: keyof typeof TOPICS, id: string, after: number, limits: RowLimits): RowStatement {
  const { source, key, toRow } = TOPICS[topic];
  return bounded(source, `${key} = ? AND position > ?`, [columnText(id), after], limits, toRow);
}

/** One range over all ids. `+` keeps SQLite from seeking each id and sorting the results. */
function rowsOfTopics(
  topic: keyof typeof TOPICS,
  ids: readonly string[],
  after: number,
  limits: RowLimits,
): RowStatement {
  const { source, key, toRow } = TOPICS[topic];
  const where = `position > ? AND +${key} IN (SELECT value FROM json_each(?))`;
  return bounded(source, where, [after, JSON.stringify(ids)], limits, toRow);
}

/** Omits the projection state, which readers don't need. */
const FLEET = {
  session: { table: 'sessions', columns: SESSION_ROW.columns },
  agent: { table: 'agents', columns: AGENT_ROW.columns },
  task: { table: 'tasks', columns: (as: string) => `${TASK_ROW.columns(as)}, ${as}.updated_position` },
  obligation: {
    table: 'obligations',
    columns: (as: string) => `${OBLIGATION_ROW.columns(as)}, ${as}.updated_position`,
  },
  inbox: { table: 'inbox', columns: inboxColumns },
} as const;

const source = (kind: FleetRow['kind']) => ({ ...FLEET[kind], text: 'body', order: 'updated_position' });

/** Rows changed after a position, in their newest version. */
function changedRows(kind: FleetRow['kind'], scope: Scope, after: number, limits: RowLimits): RowStatement {
  const where = `updated_position > ? AND ${inScope(kind, scope)}`;
  return bounded(source(kind), where, [after], limits, fleetRow(kind));
}

/** Maximum changed rows that one statement searches, using only the index. */
const SPAN = 4096;
/** The newest ended tasks are sent to every reader. */
const RECENT_TASKS = 500;
const REPLAYED = {
  task: {
    index: 'tasks_by_change',
    isOpen: `status = 'running'`,
    recentAfter: (where: string) => `ifnull((SELECT updated_position FROM tasks WHERE updated_position > 0 AND ${where}
      ORDER BY updated_position DESC LIMIT 1 OFFSET ${RECENT_TASKS - 1}), 0) - 1`,
  },
  obligation: {
    index: 'obligations_by_change',
    isOpen: `state = 'owed'`,
    recentAfter: () => `${Number.MAX_SAFE_INTEGER}`,
  },
  inbox: { index: 'inbox_by_change', isOpen: 'done_at IS NULL', recentAfter: () => `${Number.MAX_SAFE_INTEGER}` },
} as const;

/** Bounds of the items that a reader may believe to be open while it catches up page by page. */
interface Replay {
  /** Position at which the reader resumed. The reader knows the items that were open there. */
  from: number;
  /** The oldest position at which a page was read, which may have sent items as open. */
  openSince: number;
}

/**
 * Selects the changed tasks, obligations or inbox items that a resuming reader needs: open ones; ones that existed
 * where it resumed and have ended since; ones that changed since an earlier page may have sent them; recent ones; and
 * all of some sessions. Items that both started and ended in between are omitted.
 *
 * @param sessionIds sessions of the reader's topics, whose rows are all sent
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
  const where = `${own} AND updated_position > ? AND updated_position <= (SELECT max(updated_position) FROM (${span}))
    AND (${isOpen} OR position <= ? OR updated_position > ? OR updated_position > ${recentAfter(own)}
      OR session_id IN (SELECT value FROM json_each(?)))`;
  const args = [after, after, from, openSince, JSON.stringify(sessionIds.map(columnText))];
  return [
    bounded({ ...source(kind), index }, where, args, limits, fleetRow(kind)),
    {
      sql: `SELECT count(*) AS seen, max(updated_position) AS reached FROM (${span})`,
      args: [after],
      toRow: null,
      endOf: ([found]) => (Number(found?.seen ?? 0) < SPAN ? null : Number(found?.reached)),
    },
  ];
}

/** Must agree with `isInScope` in the fan-out, which filters rows read for several readers. */
function inScope(kind: FleetRow['kind'], scope: Scope): string {
  if (kind === 'agent') return agentsIn(scope, 'id');
  return kind === 'session' ? listedSessionsIn(scope) : sessionsIn(scope, 'session_id');
}

function fleetRow(kind: FleetRow['kind']): (columns: Columns) => FleetRow {
  return (columns) => ({ kind, position: Number(columns.updated_position), columns });
}

/** A table, its reading order, and the column with the text to measure. */
interface RowSource {
  table: string;
  /** @param as alias of the table */
  columns: (as: string) => string;
  text: string;
  order: string;
  index?: string;
}

/**
 * Ends the rows where their text exceeds the limit, after at least one row. Reads other columns only for these rows.
 */
function bounded(
  { table, columns, text, order, index }: RowSource,
  where: string,
  args: InValue[],
  limits: RowLimits,
  toRow: (columns: Columns) => Row,
): RowStatement {
  return {
    sql: `SELECT ${columns('found')}, size_so_far FROM (
      SELECT id_of_row, size, SUM(size) OVER (ORDER BY place ROWS UNBOUNDED PRECEDING) AS size_so_far FROM (
        SELECT rowid AS id_of_row, ${order} AS place, octet_length(${text}) AS size
        FROM ${table}${index === undefined ? '' : ` INDEXED BY ${index}`} WHERE ${where} ORDER BY ${order} LIMIT ?
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
  // The server's seq numbers run across all agents, so they would reveal how busy other agents are.
  const seq = event.producerId === SERVER_PRODUCER_ID ? 0 : event.seq;
  return { kind: 'event', ...event, seq, payload: String(row.payload) };
}

function toLine(row: Columns): LogRow {
  return { kind: 'log', position: Number(row.position), agentId: String(row.agent_id), line: logLineFromRow(row) };
}
