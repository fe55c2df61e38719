import type { Row } from '@libsql/client';
import type { Database } from '@/db/client';
import { columnText } from '@/db/column-text';
import { SESSION_ROW, sessionFromRow } from '@/db/fleet-rows';
import { Pace } from '@/db/next-turn';
import type { Position } from '@/lib/protocol/position';
import { LIST_LIMIT } from '@/lib/protocol/queries';
import {
  SESSION_STATES,
  type SessionDetail,
  type SessionList,
  type SessionState,
  type SessionSummary,
} from '@/lib/protocol/read-models';
import { cursorText, type ListCursor } from './list-cursor';
import { asRead, type Query, query, readTogether } from './read-together';

const COLUMNS = SESSION_ROW.columns();
/** Sessions of one state are counted up to here: counting takes a millisecond for ten thousand. */
const MOST_COUNTED = 100_000;
const COUNTS = SESSION_STATES.map((state) =>
  query(
    (row) => Number(row.count),
    `SELECT count(*) AS count FROM (SELECT 1 FROM sessions WHERE state = ? LIMIT ${MOST_COUNTED})`,
    state,
  ),
);

/** Those that come with a page of the dashboard. */
export const SESSIONS_IN_PAGE = 100;

/**
 * The sessions that are not done and the newest `done` of those that are, 1,000 together at most, the one with the newest
 * event first. Where there are more, those are listed that need a person most: failed, waiting, working, idle, done.
 */
export async function readSessions(database: Database, done = LIST_LIMIT): Promise<SessionList> {
  const limitOf = (state: SessionState) => (state === 'done' ? done : LIST_LIMIT) + 1;
  const { position, counts, states } = await readByState(database, (state) => ofState(state, null, limitOf(state)));
  // Of each state one row more than can be listed was read, to know whether there are more.
  const found = states.flat();
  const isDoneCut = (states.at(-1)?.length ?? 0) > done;
  const sessions = await new Pace().map((isDoneCut ? found.slice(0, -1) : found).slice(0, LIST_LIMIT), sessionFromRow);
  const hasMore = sessions.length < found.length;
  const next = hasMore ? nextAfter(sessions.at(-1)) : null;
  return { position, sessions: newestFirst(sessions), hasMore, next, counts };
}

/**
 * One page of all sessions: those that need a person most come first (failed, waiting, working, idle, done), of each
 * state those with the newest event.
 */
export async function readSessionPage(
  database: Database,
  { after, limit }: { after: ListCursor | null; limit: number },
): Promise<SessionList> {
  const from = after === null ? 0 : SESSION_STATES.indexOf(after.group as SessionState);
  const { position, counts, states } = await readByState(database, (state, at) =>
    at < from ? null : ofState(state, at === from ? after : null, limit + 1),
  );
  const found = await new Pace().map(states.flat().slice(0, limit + 1), sessionFromRow);
  return { position, counts, ...pageOf(found, limit, nextAfter) };
}

/** @returns in the order of SESSION_STATES what was asked of each, and how many there are */
async function readByState(
  { reader }: Database,
  ofEach: (state: SessionState, at: number) => Query<Row> | null,
): Promise<{ position: Position; counts: Record<SessionState, number>; states: Row[][] }> {
  const wanted = SESSION_STATES.map(ofEach).filter((one) => one !== null);
  const { position, found } = await readTogether<(number | Row)[]>(reader, [...COUNTS, ...wanted]);
  const counts = { failed: 0, waiting: 0, working: 0, idle: 0, done: 0 };
  for (const [at, state] of SESSION_STATES.entries()) counts[state] = (found[at]?.[0] as number | undefined) ?? 0;
  return { position, counts, states: found.slice(COUNTS.length) as Row[][] };
}

/** One page of an agent's sessions, the one with the newest event first. */
export async function readAgentSessions(
  database: Database,
  agentId: string,
  { after, limit }: { after: ListCursor | null; limit: number },
): Promise<Omit<SessionList, 'counts'>> {
  const { position, found } = await readTogether(database.reader, [ofAgent(agentId, after, limit + 1)]);
  return { position, ...agentPageOf(await new Pace().map(found[0], sessionFromRow), limit) };
}

/** The group that cursors of an agent's sessions are of. */
export const AGENT_GROUP = 'agent';

/** @param rows up to one more than the page takes, to know whether there are more */
export function agentPageOf(rows: readonly SessionSummary[], limit: number) {
  return pageOf(rows, limit, (last) => last && cursorText({ group: AGENT_GROUP, at: last.lastEventAt, id: last.id }));
}

export function ofAgent(agentId: string, after: ListCursor | null, limit: number): Query<Row> {
  return newest('agent_id', columnText(agentId), after, limit);
}

function ofState(state: SessionState, after: ListCursor | null, limit: number): Query<Row> {
  return newest('state', state, after, limit);
}

function newest(column: 'agent_id' | 'state', value: string, after: ListCursor | null, limit: number): Query<Row> {
  const place = after === null ? '' : 'AND (last_event_at, id) < (?, ?)';
  return query(
    asRead,
    `SELECT ${COLUMNS} FROM sessions WHERE ${column} = ? ${place} ORDER BY last_event_at DESC, id DESC LIMIT ?`,
    value,
    ...(after === null ? [] : [after.at, columnText(after.id)]),
    limit,
  );
}

function pageOf(
  rows: readonly SessionSummary[],
  limit: number,
  cursorBehind: (last: SessionSummary | undefined) => string | null | undefined,
): Pick<SessionList, 'sessions' | 'hasMore' | 'next'> {
  const sessions = rows.slice(0, limit);
  const hasMore = rows.length > limit;
  return { sessions, hasMore, next: hasMore ? (cursorBehind(sessions.at(-1)) ?? null) : null };
}

function nextAfter(last: SessionSummary | undefined): string | null {
  return last === undefined ? null : cursorText({ group: last.state, at: last.lastEventAt, id: last.id });
}

function newestFirst(sessions: SessionSummary[]): SessionSummary[] {
  return sessions.sort((a, b) => b.lastEventAt - a.lastEventAt || (a.id < b.id ? 1 : -1));
}

/** @returns null when there is no such session */
export async function readSession({ reader }: Database, sessionId: string): Promise<SessionDetail | null> {
  const sql = `SELECT ${COLUMNS} FROM sessions WHERE id = ?`;
  const { position, found } = await readTogether(reader, [query(sessionFromRow, sql, columnText(sessionId))]);
  const [session] = found[0];
  return session === undefined ? null : { position, session };
}
