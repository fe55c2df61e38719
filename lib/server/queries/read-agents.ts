import { agentText } from '@interlude/protocol/list-search';
import { positionFromNumber } from '@interlude/protocol/position';
import type {
  AgentDetail,
  AgentList,
  AgentSummary,
  Insight,
  ParkedList,
  ParkedState,
  QuarantinedRecord,
} from '@interlude/protocol/read-models';
import type { Row } from '@libsql/client';
import { AGENT_ROW, agentFromRow, producerFromRow, sessionFromRow } from '@/db/read-model-rows';
import { insights, quarantine } from '@/db/schema';
import { agentsIn, logsIn } from '@/db/scope-sql';
import { columnText, shapeWithout } from '@/db/table-rows';
import { Yielder } from '@/db/yield-to-loop';
import type { ReadScope } from '@/lib/server/access/request-context';
import { agentPageOf, ofAgent } from './read-sessions';
import { type Query, query, rawRow, readSnapshot } from './read-snapshot';
import { cursorText, type ListCursor, SEARCH_PAGE_ROWS, searchRedacted } from './search-pages';

/** Newest first, including settled ones. */
const QUARANTINE_SHOWN = 50;
const PARKED_SHOWN = 50;
const INSIGHTS_SHOWN = 50;
/** Longer quarantined records are truncated to an excerpt. */
const RECORD_SHOWN_BYTES = 2_048;

const QUARANTINED = shapeWithout(quarantine, 'record');
/** SQL truncates the records, so showing a line doesn't read megabytes. */
const QUARANTINE_COLUMNS = `${QUARANTINED.columns()}, octet_length(record) AS size,
  CASE WHEN octet_length(record) <= ${RECORD_SHOWN_BYTES} THEN record END AS record,
  CASE WHEN octet_length(record) > ${RECORD_SHOWN_BYTES} THEN substr(record, 1, ${RECORD_SHOWN_BYTES}) END AS excerpt`;

/** Rows per page of the dashboard. */
export const AGENTS_IN_PAGE = 100;
export const AGENTS_GROUP = 'agents';
const SESSIONS_SHOWN = 100;
const PRODUCERS_SHOWN = 100;
const MAX_COUNTED = 100_000;

/** Bytes that end a page early, because an agent's status may be as large as a record. */
const PAGE_BYTES = 2 * 1024 * 1024;

/** One page of the agents by id, cut short at PAGE_BYTES. */
export async function readAgents(
  view: ReadScope,
  { after, limit, words = [] }: { after: ListCursor | null; limit: number; words?: readonly string[] },
): Promise<AgentList> {
  const found = ['last_seen_at >= 0', agentsIn(view.scope, 'id'), ...words.map(() => 'instr(words, ?) > 0')].join(
    ' AND ',
  );
  const looked = words.map(columnText);
  const place = after === null ? '' : 'AND id > ?';
  const { position, found: answers } = await readSnapshot(view, [
    countListed(found, looked),
    query(
      rawRow,
      `SELECT ${AGENT_ROW.columns('a')}, size_so_far FROM (
          SELECT id_of_row, size, SUM(size) OVER (ROWS UNBOUNDED PRECEDING) AS size_so_far
          FROM (SELECT rowid AS id_of_row, octet_length(body) AS size FROM agents WHERE +${found} ${place} ORDER BY id LIMIT ?)
        ) AS sized CROSS JOIN agents AS a ON a.rowid = sized.id_of_row WHERE size_so_far - size < ${PAGE_BYTES}`,
      ...looked,
      ...(after === null ? [] : [columnText(after.id)]),
      limit + 1,
    ),
  ]);
  const [[count = 0], rows] = answers;
  const isCut = rows.length > limit || Number(rows.at(-1)?.size_so_far ?? 0) >= PAGE_BYTES;
  const listed = await new Yielder().map(rows.slice(0, limit), agentFromRow);
  const last = isCut ? listed.at(-1) : undefined;
  return { position, agents: listed, next: last === undefined ? null : cursorBehind(last), count };
}

/** The number of agents that match a condition. */
function countListed(condition: string, args: readonly string[] = []): Query<number> {
  const text = `SELECT count(*) AS count FROM (SELECT 1 FROM agents WHERE last_seen_at >= 0 AND ${condition} LIMIT ${MAX_COUNTED})`;
  return query((row) => Number(row.count), text, ...args);
}

function cursorBehind({ id }: AgentSummary): string {
  return cursorText({ group: AGENTS_GROUP, at: 0, id });
}

/** `readAgents` with search words. A redacted reader searches the redacted rows, and `count` counts the page only. */
export async function searchAgents(
  view: ReadScope,
  place: { after: ListCursor | null; limit: number },
  words: readonly string[],
): Promise<AgentList> {
  if (!view.redacts || words.length === 0) return readAgents(view, { ...place, words });
  const listing = {
    read: (after: ListCursor | null) => readAgents(view, { after, limit: SEARCH_PAGE_ROWS }),
    rowsOf: ({ agents }: AgentList) => agents,
    textOf: agentText,
    cursorBehind,
    groups: [AGENTS_GROUP],
  };
  const { page, rows: agents, next } = await searchRedacted<AgentList, AgentSummary>(listing, words, place);
  return { position: page.position, agents, next, count: agents.length };
}

/**
 * One agent with its most recent outboxes, sessions, insights and quarantined records, newest first.
 *
 * @returns null for an unknown agent
 */
export async function readAgent(view: ReadScope, agentId: string): Promise<AgentDetail | null> {
  const id = columnText(agentId);
  const { position, found } = await readSnapshot(view, [
    selectAgent(agentId, agentsIn(view.scope, 'id')),
    query(
      rawRow,
      `SELECT *, count(*) OVER () AS producer_count FROM producers
        WHERE agent_id = ? ORDER BY last_seen_at DESC, id LIMIT ?`,
      id,
      PRODUCERS_SHOWN,
    ),
    ofAgent(view, agentId, null, SESSIONS_SHOWN + 1),
    query(
      quarantinedFromRow,
      `SELECT ${QUARANTINE_COLUMNS} FROM quarantine WHERE agent_id = ? ORDER BY position DESC LIMIT ?`,
      id,
      QUARANTINE_SHOWN,
    ),
    query(
      insightFromRow,
      `SELECT * FROM (${newestInsights(1)}) UNION ALL SELECT * FROM (${newestInsights(0)}) ORDER BY position DESC`,
      id,
    ),
    selectParked(agentId, 'parked', 0, PARKED_SHOWN),
  ]);
  const [[agent], producers, sessions, quarantined, signals, parked] = found;
  if (agent === undefined) return null;
  const listed = agentPageOf(sessions.map(sessionFromRow), SESSIONS_SHOWN);
  return {
    position,
    agent,
    producers: producers.map(producerFromRow),
    producerCount: Number(producers[0]?.producer_count ?? 0),
    sessions: listed.sessions,
    nextSessions: listed.next,
    quarantine: quarantined,
    parked,
    insights: signals,
  };
}

/** Reads one agent's row. @returns null for an unknown agent */
export const readAgentRow = rowReader(agentsIn);
/** Reads one agent's row for readers of the agent's log. */
export const readLogAgent = rowReader(logsIn);

function rowReader(within: typeof agentsIn) {
  return async (view: ReadScope, agentId: string): Promise<Pick<AgentDetail, 'position' | 'agent'> | null> => {
    const { position, found } = await readSnapshot(view, [selectAgent(agentId, within(view.scope, 'id'))]);
    const [agent] = found[0];
    return agent === undefined ? null : { position, agent };
  };
}

function selectAgent(agentId: string, where: string): Query<AgentSummary> {
  const sql = `SELECT ${AGENT_ROW.columns()} FROM agents WHERE id = ? AND ${where}`;
  return query(agentFromRow, sql, columnText(agentId));
}

export interface ParkedPage {
  state: ParkedState['state'];
  after: number;
  limit: number;
}

/** One page of an agent's parked records, oldest first. */
export async function readParked(
  view: ReadScope,
  agentId: string,
  { state, after, limit }: ParkedPage,
): Promise<ParkedList> {
  const { position, found } = await readSnapshot(view, [
    selectParked(agentId, state, after, limit + 1, agentsIn(view.scope)),
  ]);
  const [records] = found;
  return { position, hasMore: records.length > limit, records: records.slice(0, limit) };
}

function selectParked(
  agentId: string,
  state: ParkedState['state'],
  after: number,
  limit: number,
  where = 'TRUE',
): Query<QuarantinedRecord> {
  const sql = `SELECT ${QUARANTINE_COLUMNS} FROM quarantine
    WHERE ${where} AND agent_id = ? AND parked = ? AND position > ? ORDER BY position LIMIT ?`;
  return query(quarantinedFromRow, sql, columnText(agentId), state, after, limit);
}

const INSIGHT = shapeWithout(insights, 'sessionId');

/** Failures are selected separately, so other signals never push them out. */
function newestInsights(isFailure: 0 | 1): string {
  return `SELECT ${INSIGHT.columns()},
      (SELECT id FROM sessions AS s WHERE s.id = i.session_id AND s.agent_id = i.agent_id) AS own_session_id
    FROM insights AS i WHERE agent_id = ?1 AND is_failure = ${isFailure}
    ORDER BY position DESC LIMIT ${INSIGHTS_SHOWN}`;
}

function insightFromRow(row: Row): Insight {
  const { position, ...insight } = INSIGHT.read(row);
  // Omits an unknown session, or one of another agent.
  const sessionId = row.own_session_id === null ? null : String(row.own_session_id);
  return { ...insight, sessionId, position: positionFromNumber(position) };
}

function quarantinedFromRow(row: Row): QuarantinedRecord {
  const { parked, taskId, taskRunId, settledAt, settledBy, settledReason, settledSessionId, settledClientId, ...rest } =
    QUARANTINED.read(row);
  const settled = { settledAt, settledBy, reason: settledReason, assignedSessionId: settledSessionId };
  return {
    ...rest,
    position: positionFromNumber(rest.position),
    record: row.record === null ? null : JSON.parse(String(row.record)),
    excerpt: row.excerpt === null ? null : String(row.excerpt),
    size: Number(row.size),
    parked: parked === null ? null : { state: parked, taskId: taskId ?? '', taskRunId, ...settled },
  };
}
