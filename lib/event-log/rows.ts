import type { Row as Columns, InValue } from '@libsql/client';
import { columnText } from '@/db/column-text';
import { LOG_COLUMNS, logLineFromRow } from '@/db/log-rows';
import type { LogLine } from '@/lib/protocol/read-models';

/** Rows as they stand in the database, by the statements that read them after a position. */

export interface EventRow {
  kind: 'event';
  position: number;
  sessionId: string;
  agentId: string;
  seq: number;
  occurredAt: number;
  receivedAt: number;
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
  limits: RowLimits;
  toRow: (columns: Columns) => Row;
}

const EVENT_COLUMNS = 'position, session_id, agent_id, seq, occurred_at, received_at, payload';

export function eventsOfSession(sessionId: string, after: number, limits: RowLimits): RowStatement {
  const inner = `SELECT ${EVENT_COLUMNS}, octet_length(payload) AS size FROM events
    WHERE session_id = ? AND position > ? ORDER BY position LIMIT ?`;
  return bounded(inner, [columnText(sessionId), after, limits.rows], limits, toEvent);
}

/** One range for all sessions. `+` keeps SQLite from seeking each session and sorting what it found. */
export function eventsOfSessions(sessionIds: readonly string[], after: number, limits: RowLimits): RowStatement {
  const inner = `SELECT ${EVENT_COLUMNS}, octet_length(payload) AS size FROM events
    WHERE position > ? AND +session_id IN (SELECT value FROM json_each(?)) ORDER BY position LIMIT ?`;
  return bounded(inner, [after, JSON.stringify(sessionIds), limits.rows], limits, toEvent);
}

export function linesOfAgent(agentId: string, after: number, limits: RowLimits): RowStatement {
  const inner = `SELECT ${LOG_COLUMNS}, octet_length(message) AS size FROM log_lines
    WHERE agent_id = ? AND position > ? ORDER BY position LIMIT ?`;
  return bounded(inner, [columnText(agentId), after, limits.rows], limits, toLine);
}

export function linesOfAgents(agentIds: readonly string[], after: number, limits: RowLimits): RowStatement {
  const inner = `SELECT ${LOG_COLUMNS}, octet_length(message) AS size FROM log_lines
    WHERE position > ? AND +agent_id IN (SELECT value FROM json_each(?)) ORDER BY position LIMIT ?`;
  return bounded(inner, [after, JSON.stringify(agentIds), limits.rows], limits, toLine);
}

const FLEET = {
  // `places` is the projection's memory and no reader's business
  session: { table: 'sessions', columns: 'id, agent_id, state, last_event_at, body, updated_position' },
  agent: { table: 'agents', columns: 'id, last_seen_at, body, updated_position' },
  task: { table: 'tasks', columns: 'session_id, agent_id, position, status, body, updated_position' },
  obligation: { table: 'obligations', columns: 'session_id, agent_id, state, position, body, updated_position' },
} as const;

export function changedRows(kind: FleetRow['kind'], after: number, limits: RowLimits): RowStatement {
  const { table, columns } = FLEET[kind];
  return {
    sql: `SELECT ${columns} FROM ${table} WHERE updated_position > ? ORDER BY updated_position LIMIT ?`,
    args: [after, limits.rows],
    limits,
    toRow: (row) => ({ kind, position: Number(row.updated_position), columns: row }),
  };
}

/** Ends a statement's rows where their text grows beyond the limit; the first row always comes. */
function bounded(inner: string, args: InValue[], limits: RowLimits, toRow: RowStatement['toRow']): RowStatement {
  return {
    sql: `SELECT * FROM (
      SELECT *, SUM(size) OVER (ORDER BY position ROWS UNBOUNDED PRECEDING) AS size_so_far FROM (${inner})
    ) WHERE size_so_far - size < ?`,
    args: [...args, limits.bytes],
    limits,
    toRow,
  };
}

/** Whether a statement's limits may have held rows back. */
export function isCutOff(found: readonly Columns[], limits: RowLimits): boolean {
  return found.length >= limits.rows || Number(found.at(-1)?.size_so_far ?? 0) >= limits.bytes;
}

function toEvent(row: Columns): EventRow {
  return {
    kind: 'event',
    position: Number(row.position),
    sessionId: String(row.session_id),
    agentId: String(row.agent_id),
    seq: Number(row.seq),
    occurredAt: Number(row.occurred_at),
    receivedAt: Number(row.received_at),
    payload: String(row.payload),
  };
}

function toLine(row: Columns): LogRow {
  return { kind: 'log', position: Number(row.position), agentId: String(row.agent_id), line: logLineFromRow(row) };
}
