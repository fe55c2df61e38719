import { noSessions, SESSION_STATES, type SessionState } from '@interlude/protocol/agent-state';
import { sessionText } from '@interlude/protocol/list-search';
import type { Position } from '@interlude/protocol/position';
import { LIST_LIMIT } from '@interlude/protocol/queries';
import type { SessionDetail, SessionList, SessionSummary } from '@interlude/protocol/read-models';
import { listedScope, reachesAgent } from '@interlude/protocol/scope';
import type { InValue, Row } from '@libsql/client';
import { SESSION_ROW, sessionFromRow } from '@/db/read-model-rows';
import { listedSessionsIn, sessionsIn } from '@/db/scope-sql';
import { columnText } from '@/db/table-rows';
import { Yielder } from '@/db/yield-to-loop';
import type { Sight } from '@/lib/server/access/sight';
import { cursorText, type ListCursor } from './list-cursor';
import { matchOf } from './log-match';
import { asRead, type Query, query, readTogether } from './read-together';
import { countsOf, LOOKED_AT_ONCE, searchShown } from './search-shown';

const COLUMNS = SESSION_ROW.columns();
/** Sessions of one state are counted up to here: counting takes a millisecond for ten thousand. */
const MOST_COUNTED = 100_000;
/** The same for a search, which has to read each of them. */
const MOST_FOUND_COUNTED = 1_000;

/** How many come with a page of the dashboard. */
export const SESSIONS_IN_PAGE = 100;

/**
 * The first page of the sessions, newest event first. If there are more, those are kept whose state comes first in
 * SESSION_STATES, of each state the newest.
 */
export async function readSessions(sight: Sight, limit = LIST_LIMIT): Promise<SessionList> {
  const { sessions, ...page } = await readSessionPage(sight, { after: null, limit });
  return { ...page, sessions: newestFirst(sessions) };
}

/**
 * One page of the sessions that match: in the order of SESSION_STATES, within a state those with the newest event
 * first.
 */
export async function readSessionPage(
  sight: Sight,
  { after, limit }: { after: ListCursor | null; limit: number },
  filter: SessionFilter = EVERY_SESSION,
): Promise<SessionList> {
  const from = after === null ? 0 : SESSION_STATES.indexOf(after.group as SessionState);
  const { position, counts, states } = await readByState(sight, filter, (state, at) =>
    at < from
      ? null
      : newest([inState(state), ...scopeOf(sight), ...conditionsOf(filter)], at === from ? after : null, limit + 1),
  );
  const found = await new Yielder().map(states.flat().slice(0, limit + 1), sessionFromRow);
  return { position, counts, ...pageOf(found, limit, nextAfter) };
}

/** `readSessionPage` with words. For a redacted reader in what it is shown, and the counts are of what is listed. */
export async function searchSessions(
  sight: Sight,
  place: { after: ListCursor | null; limit: number },
  filter: SessionFilter,
): Promise<SessionList> {
  const { words } = filter;
  if (!sight.redacts || words.length === 0) return readSessionPage(sight, place, filter);
  const listing = {
    read: (after: ListCursor | null) =>
      readSessionPage(sight, { after, limit: LOOKED_AT_ONCE }, { ...filter, words: [] }),
    rowsOf: ({ sessions }: SessionList) => sessions,
    textOf: sessionText,
    cursorBehind,
    groups: SESSION_STATES,
  };
  const { page, rows: sessions, next } = await searchShown<SessionList, SessionSummary>(listing, words, place);
  const counts = countsOf(page.counts, sessions, ({ state }) => state);
  return { position: page.position, counts, sessions, hasMore: next !== null, next };
}

/** @returns the rows of each matching state, and how many there are in all */
async function readByState(
  sight: Sight,
  filter: SessionFilter,
  ofEach: (state: SessionState, at: number) => Query<Row> | null,
): Promise<{ position: Position; counts: Record<SessionState, number>; states: Row[][] }> {
  const passing = SESSION_STATES.filter((state) => filter.states.length === 0 || filter.states.includes(state));
  const wanted = passing.map((state) => ofEach(state, SESSION_STATES.indexOf(state))).filter((one) => one !== null);
  const counted = SESSION_STATES.map((state) => countOf([inState(state), ...scopeOf(sight)], conditionsOf(filter)));
  const { position, found } = await readTogether<(number | Row)[]>(sight, [...counted, ...wanted]);
  const counts = noSessions();
  for (const [at, state] of SESSION_STATES.entries()) counts[state] = (found[at]?.[0] as number | undefined) ?? 0;
  return { position, counts, states: found.slice(counted.length) as Row[][] };
}

/** One page of an agent's sessions, the one with the newest event first. */
export async function readAgentSessions(
  sight: Sight,
  agentId: string,
  { after, limit }: { after: ListCursor | null; limit: number },
): Promise<SessionList> {
  const rows = ofAgent(sight, agentId, after, limit + 1);
  const { position, found } = await readTogether(sight, [rows, ...countsOfAgent(sight, agentId)]);
  const [listed, ...counted] = found;
  const counts = noSessions();
  for (const [state, count] of counted.flat()) counts[state] += count;
  return { position, counts, ...agentPageOf(await new Yielder().map(listed, sessionFromRow), limit) };
}

type StateCount = [state: SessionState, count: number];

/** Sessions of an agent by state: from its row for readers of the whole agent, else counted. */
function countsOfAgent(sight: Sight, agentId: string): Query<StateCount>[] {
  const toCount = (row: Row): StateCount => [String(row.state) as SessionState, Number(row.count)];
  if (reachesAgent(sight.scope, agentId)) {
    const sql = `SELECT key AS state, value AS count FROM agents AS a, json_each(a.body, '$.sessionStates') WHERE a.id = ?`;
    return [query(toCount, sql, columnText(agentId))];
  }
  const { sql, args } = together([inAgent(agentId), ...scopeOf(sight)]);
  return [query(toCount, `SELECT state, count(*) AS count FROM sessions WHERE ${sql} GROUP BY state`, ...args)];
}

/** The cursor group of an agent's sessions. */
export const AGENT_GROUP = 'agent';

/** @param rows up to one more than the page holds, to know whether there are more */
export function agentPageOf(rows: readonly SessionSummary[], limit: number) {
  return pageOf(rows, limit, (last) => last && cursorText({ group: AGENT_GROUP, at: last.lastEventAt, id: last.id }));
}

export function ofAgent(
  sight: Pick<Sight, 'scope'>,
  agentId: string,
  after: ListCursor | null,
  limit: number,
): Query<Row> {
  return newest([inAgent(agentId), ...scopeOf(sight)], after, limit);
}

/** What sessions must match: states (any of them, or all), an agent, words. */
export interface SessionFilter {
  states: readonly SessionState[];
  agentId: string | null;
  /** In lower case. */
  words: readonly string[];
}

const EVERY_SESSION: SessionFilter = { states: [], agentId: null, words: [] };

/** A condition of SQL with its arguments. */
interface Condition {
  sql: string;
  args: InValue[];
}

/** What is out of it is not listed, nor counted. */
const scopeOf = ({ scope }: Pick<Sight, 'scope'>): Condition[] =>
  listedScope(scope).kind === 'everything' ? [] : [{ sql: listedSessionsIn(scope), args: [] }];
const inState = (state: SessionState): Condition => ({ sql: 'state = ?', args: [state] });
const inAgent = (agentId: string): Condition => ({ sql: 'agent_id = ?', args: [columnText(agentId)] });

/**
 * The full-text table tells which sessions may have the words, and the text itself whether they do. Sessions that are
 * being written to are not in that table: they are few, and change with every word.
 */
function conditionsOf({ agentId, words }: SessionFilter): Condition[] {
  const conditions = agentId === null ? [] : [inAgent(agentId)];
  const parts = words.map((text) => ({ kind: 'text' as const, text }));
  const match = parts.length === 0 ? null : matchOf({ kind: 'all', parts });
  if (match !== null) {
    const sql = `(state = 'working' OR number IN (SELECT rowid FROM session_search WHERE session_search MATCH ?))`;
    conditions.push({ sql, args: [match] });
  }
  for (const word of words) conditions.push({ sql: 'instr(words, ?) > 0', args: [columnText(word)] });
  return conditions;
}

function newest(conditions: readonly Condition[], after: ListCursor | null, limit: number): Query<Row> {
  const place = { sql: '(last_event_at, id) < (?, ?)', args: after === null ? [] : [after.at, columnText(after.id)] };
  const { sql, args } = together(after === null ? conditions : [...conditions, place]);
  const text = `SELECT ${COLUMNS} FROM sessions WHERE ${sql} ORDER BY last_event_at DESC, id DESC LIMIT ?`;
  return query(asRead, text, ...args, limit);
}

function countOf(listed: readonly Condition[], found: readonly Condition[]): Query<number> {
  const { sql, args } = together([...listed, ...found]);
  const most = found.length > 0 ? MOST_FOUND_COUNTED : MOST_COUNTED;
  const text = `SELECT count(*) AS count FROM (SELECT 1 FROM sessions WHERE ${sql} LIMIT ${most})`;
  return query((row) => Number(row.count), text, ...args);
}

function together(conditions: readonly Condition[]): Condition {
  return { sql: conditions.map(({ sql }) => sql).join(' AND '), args: conditions.flatMap(({ args }) => args) };
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
  return last === undefined ? null : cursorBehind(last);
}

function cursorBehind({ state, lastEventAt, id }: SessionSummary): string {
  return cursorText({ group: state, at: lastEventAt, id });
}

function newestFirst(sessions: SessionSummary[]): SessionSummary[] {
  return sessions.sort((a, b) => b.lastEventAt - a.lastEventAt || (a.id < b.id ? 1 : -1));
}

/** @returns null when there is no such session */
export async function readSession(sight: Sight, sessionId: string): Promise<SessionDetail | null> {
  const sql = `SELECT ${COLUMNS} FROM sessions WHERE id = ? AND ${sessionsIn(sight.scope, 'id')}`;
  const { position, found } = await readTogether(sight, [query(sessionFromRow, sql, columnText(sessionId))]);
  const [session] = found[0];
  return session === undefined ? null : { position, session };
}
