import type { InStatement } from '@libsql/client';
import type { Database } from '@/db/client';
import { columnText } from '@/db/column-text';
import { SESSION_ROW, sessionFromRow } from '@/db/fleet-rows';
import { Pace } from '@/db/next-turn';
import type { ResultRows } from '@/db/reader';
import {
  SESSION_STATES,
  type SessionDetail,
  type SessionList,
  type SessionState,
  type SessionSummary,
} from '@/lib/protocol/read-models';
import { COUNTER, counterOf } from './counter';
import { cursorText, type ListCursor } from './list-cursor';

const COLUMNS = SESSION_ROW.columns();
/** Sessions of one state are counted up to here: counting takes a millisecond for ten thousand. */
const MOST_COUNTED = 100_000;
const COUNTS = SESSION_STATES.map((state) => ({
  sql: `SELECT count(*) AS count FROM (SELECT 1 FROM sessions WHERE state = ? LIMIT ${MOST_COUNTED})`,
  args: [state],
}));

/** Most sessions of one answer, and those that come with a page of the dashboard. */
export const SESSIONS_LISTED = 1_000;
export const SESSIONS_IN_PAGE = 100;

/**
 * The sessions that are not done and the newest `done` of those that are, 1,000 together at most, the one with the newest
 * event first. Where there are more, those are listed that need a person most: failed, waiting, working, idle, done.
 */
export async function readSessions(database: Database, done = SESSIONS_LISTED): Promise<SessionList> {
  const limitOf = (state: SessionState) => (state === 'done' ? done : SESSIONS_LISTED) + 1;
  const [counter, ...answers] = await database.reader.batch(
    [COUNTER, ...COUNTS, ...SESSION_STATES.map((state) => ofState(state, null, limitOf(state)))],
    'read',
  );
  const states = answers.slice(COUNTS.length);
  // Of each state one row more than can be listed was read, to know whether there are more.
  const found = states.flatMap(({ rows }) => rows);
  const isDoneCut = (states.at(-1)?.rows.length ?? 0) > done;
  const sessions = await new Pace().map(
    (isDoneCut ? found.slice(0, -1) : found).slice(0, SESSIONS_LISTED),
    sessionFromRow,
  );
  const hasMore = sessions.length < found.length;
  const next = hasMore ? nextAfter(sessions.at(-1)) : null;
  return {
    position: counterOf(counter),
    sessions: newestFirst(sessions),
    hasMore,
    next,
    counts: countsOf(answers),
  };
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
  const [counter, ...answers] = await database.reader.batch(
    [
      COUNTER,
      ...COUNTS,
      ...SESSION_STATES.slice(from).map((state, at) => ofState(state, at === 0 ? after : null, limit + 1)),
    ],
    'read',
  );
  const states = answers.slice(COUNTS.length);
  const found = states.flatMap(({ rows }) => rows).slice(0, limit + 1);
  return {
    position: counterOf(counter),
    counts: countsOf(answers),
    ...pageOf(await new Pace().map(found, sessionFromRow), limit, nextAfter),
  };
}

/** One page of an agent's sessions, the one with the newest event first. */
export async function readAgentSessions(
  database: Database,
  agentId: string,
  { after, limit }: { after: ListCursor | null; limit: number },
): Promise<Omit<SessionList, 'counts'>> {
  const [counter, sessions] = await database.reader.batch([COUNTER, ofAgent(agentId, after, limit + 1)], 'read');
  const rows = await new Pace().map(sessions?.rows ?? [], sessionFromRow);
  return {
    position: counterOf(counter),
    ...agentPageOf(rows, limit),
  };
}

/** The group that cursors of an agent's sessions are of. */
export const AGENT_GROUP = 'agent';

/** @param rows up to one more than the page takes, to know whether there are more */
export function agentPageOf(rows: readonly SessionSummary[], limit: number) {
  return pageOf(rows, limit, (last) => last && cursorText({ group: AGENT_GROUP, at: last.lastEventAt, id: last.id }));
}

export function ofAgent(agentId: string, after: ListCursor | null, limit: number): InStatement {
  const place = after === null ? '' : 'AND (last_event_at, id) < (?, ?)';
  return {
    sql: `SELECT ${COLUMNS} FROM sessions WHERE agent_id = ? ${place} ORDER BY last_event_at DESC, id DESC LIMIT ?`,
    args: [columnText(agentId), ...(after === null ? [] : [after.at, columnText(after.id)]), limit],
  };
}

function ofState(state: SessionState, after: ListCursor | null, limit: number): InStatement {
  const place = after === null ? '' : 'AND (last_event_at, id) < (?, ?)';
  return {
    sql: `SELECT ${COLUMNS} FROM sessions WHERE state = ? ${place} ORDER BY last_event_at DESC, id DESC LIMIT ?`,
    args: [state, ...(after === null ? [] : [after.at, columnText(after.id)]), limit],
  };
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

function countsOf(answers: readonly ResultRows[]): Record<SessionState, number> {
  const counts = { failed: 0, waiting: 0, working: 0, idle: 0, done: 0 };
  for (const [at, state] of SESSION_STATES.entries()) counts[state] = Number(answers[at]?.rows[0]?.count ?? 0);
  return counts;
}

/** @returns null when there is no such session */
export async function readSession(database: Database, sessionId: string): Promise<SessionDetail | null> {
  const [counter, sessions] = await database.reader.batch(
    [COUNTER, { sql: `SELECT ${COLUMNS} FROM sessions WHERE id = ?`, args: [columnText(sessionId)] }],
    'read',
  );
  const row = sessions?.rows[0];
  return row === undefined ? null : { position: counterOf(counter), session: sessionFromRow(row) };
}
