import type { InStatement, Row } from '@libsql/client';
import type { Database } from '@/db/client';
import { columnText } from '@/db/column-text';
import { agentFromRow, producerFromRow, sessionFromRow } from '@/db/fleet-rows';
import { Pace } from '@/db/next-turn';
import { positionFromNumber } from '@/lib/protocol/position';
import type {
  AgentDetail,
  AgentList,
  Insight,
  ParkedList,
  ParkedState,
  QuarantinedRecord,
} from '@/lib/protocol/read-models';
import { COUNTER, counterOf } from './counter';
import { cursorText, type ListCursor } from './list-cursor';
import { agentPageOf, ofAgent } from './read-sessions';

/** Of an agent's quarantine the newest records are shown; `quarantinedCount` tells how many there are. */
const QUARANTINE_SHOWN = 50;
const PARKED_SHOWN = 50;
const INSIGHTS_SHOWN = 50;
/** Quarantined records are as large as a request may be: up to this many bytes they are shown whole, else begun. */
const RECORD_SHOWN_BYTES = 2_048;

/** Cut by the database, so that no megabytes are read to show a line. What would be unreadable is escaped in JSON. */
const QUARANTINE_COLUMNS = `position, producer_id, epoch, seq, agent_id, session_id, code, message, received_at,
  parked, task_id, task_run_id, settled_at, settled_by, settled_reason, settled_session_id,
  octet_length(record) AS size,
  CASE WHEN octet_length(record) <= ${RECORD_SHOWN_BYTES} THEN record END AS record,
  CASE WHEN octet_length(record) > ${RECORD_SHOWN_BYTES} THEN substr(record, 1, ${RECORD_SHOWN_BYTES}) END AS excerpt`;

/** Most agents of one answer, and those that come with a page of the dashboard. */
export const AGENTS_LISTED = 1_000;
export const AGENTS_IN_PAGE = 100;
/** The group that cursors of the agents are of. */
export const AGENTS_GROUP = 'agents';
const SESSIONS_SHOWN = 100;
const MOST_COUNTED = 100_000;

/** What agents say of themselves may be as large as a record: a page ends where it grows beyond this. */
const PAGE_BYTES = 2 * 1024 * 1024;

/**
 * One page of the agents, by their ids: whoever looks for one finds it where it was. It holds fewer than asked for where
 * they say much.
 */
export async function readAgents(
  database: Database,
  { after, limit }: { after: ListCursor | null; limit: number },
): Promise<AgentList> {
  const place = after === null ? '' : 'WHERE id > ?';
  const [counter, count, agents] = await database.reader.batch(
    [
      COUNTER,
      `SELECT count(*) AS count FROM (SELECT 1 FROM agents WHERE last_seen_at >= 0 LIMIT ${MOST_COUNTED})`,
      {
        sql: `SELECT a.id, a.last_seen_at, a.body, a.updated_position, size_so_far FROM (
            SELECT id_of_row, size, SUM(size) OVER (ROWS UNBOUNDED PRECEDING) AS size_so_far
            FROM (SELECT rowid AS id_of_row, octet_length(body) AS size FROM agents ${place} ORDER BY id LIMIT ?)
          ) AS sized CROSS JOIN agents AS a ON a.rowid = sized.id_of_row WHERE size_so_far - size < ${PAGE_BYTES}`,
        args: [...(after === null ? [] : [columnText(after.id)]), limit + 1],
      },
    ],
    'read',
  );
  const rows = agents?.rows ?? [];
  const isCut = rows.length > limit || Number(rows.at(-1)?.size_so_far ?? 0) >= PAGE_BYTES;
  const listed = await new Pace().map(rows.slice(0, limit), agentFromRow);
  const last = isCut ? listed.at(-1) : undefined;
  return {
    position: counterOf(counter),
    agents: listed,
    next: last === undefined ? null : cursorText({ group: AGENTS_GROUP, at: 0, id: last.id }),
    count: Number(count?.rows[0]?.count ?? 0),
  };
}

/**
 * One agent with its outboxes, the newest 100 of its sessions (newest event first) and its newest quarantined records
 * (newest first).
 *
 * @returns null when there is no such agent
 */
export async function readAgent(database: Database, agentId: string): Promise<AgentDetail | null> {
  const args = [columnText(agentId)];
  const [counter, agents, producers, sessions, quarantine, insights, parked] = await database.reader.batch(
    [
      COUNTER,
      selectAgent(agentId),
      { sql: 'SELECT * FROM producers WHERE agent_id = ? ORDER BY last_seen_at DESC, id', args },
      ofAgent(agentId, null, SESSIONS_SHOWN + 1),
      {
        sql: `SELECT ${QUARANTINE_COLUMNS} FROM quarantine
          WHERE agent_id = ? ORDER BY position DESC LIMIT ${QUARANTINE_SHOWN}`,
        args,
      },
      {
        sql: `SELECT * FROM (${newestInsights(1)}) UNION ALL SELECT * FROM (${newestInsights(0)}) ORDER BY position DESC`,
        args,
      },
      selectParked(agentId, 'parked', 0, PARKED_SHOWN),
    ],
    'read',
  );
  const row = agents?.rows[0];
  if (row === undefined) return null;
  const listed = agentPageOf((sessions?.rows ?? []).map(sessionFromRow), SESSIONS_SHOWN);
  return {
    position: counterOf(counter),
    agent: agentFromRow(row),
    producers: (producers?.rows ?? []).map(producerFromRow),
    sessions: listed.sessions,
    nextSessions: listed.next,
    quarantine: (quarantine?.rows ?? []).map(quarantinedFromRow),
    parked: (parked?.rows ?? []).map(quarantinedFromRow),
    insights: (insights?.rows ?? []).map(insightFromRow),
  };
}

/** One agent's row. @returns null when there is no such agent */
export async function readAgentRow(
  database: Database,
  agentId: string,
): Promise<Pick<AgentDetail, 'position' | 'agent'> | null> {
  const [counter, agents] = await database.reader.batch([COUNTER, selectAgent(agentId)], 'read');
  const row = agents?.rows[0];
  return row === undefined ? null : { position: counterOf(counter), agent: agentFromRow(row) };
}

function selectAgent(agentId: string): InStatement {
  return {
    sql: 'SELECT id, last_seen_at, body, updated_position FROM agents WHERE id = ?',
    args: [columnText(agentId)],
  };
}

/**
 * An agent's records about tasks whose session nothing proves, of one state, the oldest first.
 * @param after the position of the last one before the page
 */
export async function readParked(
  database: Database,
  agentId: string,
  page: { state: ParkedState['state']; after: number; limit: number },
): Promise<ParkedList> {
  const { state, after, limit } = page;
  const [counter, records] = await database.reader.batch(
    [COUNTER, selectParked(agentId, state, after, limit + 1)],
    'read',
  );
  const rows = records?.rows ?? [];
  return {
    position: counterOf(counter),
    hasMore: rows.length > limit,
    records: rows.slice(0, limit).map(quarantinedFromRow),
  };
}

function selectParked(agentId: string, state: ParkedState['state'], after: number, limit: number): InStatement {
  return {
    sql: `SELECT ${QUARANTINE_COLUMNS} FROM quarantine
      WHERE agent_id = ? AND parked = ? AND position > ? ORDER BY position LIMIT ?`,
    args: [columnText(agentId), state, after, limit],
  };
}

/** Apart: however many other signals there are, the failures are not among what is left out. */
function newestInsights(isFailure: 0 | 1): string {
  return `SELECT *, (SELECT id FROM sessions AS s WHERE s.id = i.session_id AND s.agent_id = i.agent_id) AS own_session_id
    FROM insights AS i WHERE agent_id = ?1 AND is_failure = ${isFailure}
    ORDER BY position DESC LIMIT ${INSIGHTS_SHOWN}`;
}

function insightFromRow(row: Row): Insight {
  return {
    position: positionFromNumber(Number(row.position)),
    agentId: String(row.agent_id),
    // whichever it names: what is another agent's, or nobody's, is not told of
    sessionId: row.own_session_id === null ? null : String(row.own_session_id),
    signal: String(row.signal),
    value: row.value === null ? null : JSON.parse(String(row.value)),
    outcome: row.outcome === null ? null : String(row.outcome),
    source: String(row.source),
    detail: String(row.detail),
    isFailure: Number(row.is_failure) === 1,
    occurredAt: Number(row.occurred_at),
    seenAt: row.seen_at === null ? null : Number(row.seen_at),
  };
}

function quarantinedFromRow(row: Row): QuarantinedRecord {
  return {
    position: positionFromNumber(Number(row.position)),
    producerId: String(row.producer_id),
    epoch: Number(row.epoch),
    seq: Number(row.seq),
    agentId: row.agent_id === null ? null : String(row.agent_id),
    sessionId: row.session_id === null ? null : String(row.session_id),
    code: String(row.code),
    message: String(row.message),
    record: row.record === null ? null : JSON.parse(String(row.record)),
    excerpt: row.excerpt === null ? null : String(row.excerpt),
    size: Number(row.size),
    receivedAt: Number(row.received_at),
    parked: row.parked === null ? null : parkedFromRow(row),
  };
}

function parkedFromRow(row: Row): ParkedState {
  const text = (value: unknown) => (value === null ? null : String(value));
  return {
    state: String(row.parked) as ParkedState['state'],
    taskId: String(row.task_id),
    taskRunId: text(row.task_run_id),
    settledAt: row.settled_at === null ? null : Number(row.settled_at),
    settledBy: text(row.settled_by),
    reason: text(row.settled_reason),
    assignedSessionId: text(row.settled_session_id),
  };
}
