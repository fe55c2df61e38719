import { sessionText } from '@interlude/protocol/list-search';
import type { Position } from '@interlude/protocol/position';
import { LIST_LIMIT } from '@interlude/protocol/queries';
import type { SessionDetail, SessionList, SessionSummary } from '@interlude/protocol/read-models';
import { listedScope, reachesAgent } from '@interlude/protocol/scope';
import {
  LISTED_AS,
  type ListedState,
  noSessions,
  SESSION_STATES,
  type SessionState,
} from '@interlude/protocol/session-states';
import type { Row } from '@libsql/client';
import { SESSION_ROW, sessionFromRow } from '@/db/read-model-rows';
import { listedSessionsIn, sessionsIn } from '@/db/scope-sql';
import { columnText } from '@/db/table-rows';
import { Yielder } from '@/db/yield-to-loop';
import type { ReadScope } from '@/lib/server/access/request-context';
import { allOf, type Condition, trigramQuery } from './log-conditions';
import { type Query, query, rawRow, readSnapshot } from './read-snapshot';
import { countsOf, cursorText, type ListCursor, SEARCH_PAGE_ROWS, searchRedacted } from './search-pages';

const COLUMNS = SESSION_ROW.columns();
/** Maximum count. Counting ten thousand sessions takes a millisecond. */
const MAX_COUNTED = 100_000;
/** Maximum count of a search, which reads each session that it counts. */
const MAX_FOUND_COUNTED = 1_000;

/** Rows per page of the dashboard. */
export const SESSIONS_IN_PAGE = 100;

/** The first page by SESSION_STATES, sorted by newest event. */
export async function readSessions(view: ReadScope, limit = LIST_LIMIT): Promise<SessionList> {
  const { sessions, ...page } = await readSessionPage(view, { after: null, limit });
  return { ...page, sessions: newestFirst(sessions) };
}

/** One page of the matching sessions, in the order of SESSION_STATES and by newest event. */
export async function readSessionPage(
  view: ReadScope,
  { after, limit }: { after: ListCursor | null; limit: number },
  filter: SessionFilter = EVERY_SESSION,
): Promise<SessionList> {
  const from = after === null ? 0 : SESSION_STATES.indexOf(after.group as SessionState);
  const { position, counts, states } = await readByState(view, filter, (state, at) =>
    at < from
      ? null
      : newest(
          [...inState(state, filter), ...scopeOf(view), ...conditionsOf(filter)],
          at === from ? after : null,
          limit + 1,
        ),
  );
  const found = await new Yielder().map(states.flat().slice(0, limit + 1), sessionFromRow);
  return { position, counts, ...pageOf(found, limit, cursorBehind) };
}

/**
 * `readSessionPage` with search words. A redacted reader searches the redacted rows, and `counts` counts the page only.
 */
export async function searchSessions(
  view: ReadScope,
  place: { after: ListCursor | null; limit: number },
  filter: SessionFilter,
): Promise<SessionList> {
  const { words } = filter;
  if (!view.redacts || words.length === 0) return readSessionPage(view, place, filter);
  const listing = {
    read: (after: ListCursor | null) =>
      readSessionPage(view, { after, limit: SEARCH_PAGE_ROWS }, { ...filter, words: [] }),
    rowsOf: ({ sessions }: SessionList) => sessions,
    textOf: sessionText,
    cursorBehind,
    groups: SESSION_STATES,
  };
  const { page, rows: sessions, next } = await searchRedacted<SessionList, SessionSummary>(listing, words, place);
  const counts = countsOf(page.counts, sessions, ({ state }) => state);
  return { position: page.position, counts, sessions, hasMore: next !== null, next };
}

async function readByState(
  view: ReadScope,
  filter: SessionFilter,
  ofEach: (state: SessionState, at: number) => Query<Row> | null,
): Promise<{ position: Position; counts: Record<SessionState, number>; states: Row[][] }> {
  const passing = SESSION_STATES.filter(
    (state) => (filter.states.length === 0 || filter.states.includes(state)) && isListed(state, filter.listed),
  );
  const wanted = passing.map((state) => ofEach(state, SESSION_STATES.indexOf(state))).filter((one) => one !== null);
  const counted = SESSION_STATES.map((state) =>
    countOf([...inState(state, filter), ...scopeOf(view)], conditionsOf(filter)),
  );
  const { position, found } = await readSnapshot<(number | Row)[]>(view, [...counted, ...wanted]);
  const counts = noSessions();
  for (const [index, state] of SESSION_STATES.entries()) counts[state] = (found[index]?.[0] as number | undefined) ?? 0;
  return { position, counts, states: found.slice(counted.length) as Row[][] };
}

/** One page of an agent's sessions by newest event. */
export async function readAgentSessions(
  view: ReadScope,
  agentId: string,
  { after, limit }: { after: ListCursor | null; limit: number },
): Promise<SessionList> {
  const rows = ofAgent(view, agentId, after, limit + 1);
  const { position, found } = await readSnapshot(view, [rows, ...countsOfAgent(view, agentId)]);
  const [listed, ...counted] = found;
  const counts = noSessions();
  for (const [state, count] of counted.flat()) counts[state] += count;
  return { position, counts, ...agentPageOf(await new Yielder().map(listed, sessionFromRow), limit) };
}

type StateCount = [state: SessionState, count: number];
export type ListedCount = [state: ListedState, count: number];

/** Counts of the sessions by the state under which people find them. A state may have two counts. */
export function countsByListedState(view: ReadScope): Query<ListedCount>[] {
  const parts: [SessionState, ListedState][] = SESSION_STATES.flatMap((state) => {
    const other = LISTED_AS[state];
    const own: [SessionState, ListedState] = [state, state];
    return other === undefined ? [own] : [own, [state, other]];
  });
  return parts.map(([state, listed]) => {
    const filter = { ...EVERY_SESSION, listed: [listed] };
    const { toRow, ...counted } = countOf([...inState(state, filter), ...scopeOf(view)], []);
    return { ...counted, toRow: (row): ListedCount => [listed, toRow(row)] };
  });
}

/** Counts by state: from the agent's row for readers of the whole agent, otherwise from the sessions in scope. */
function countsOfAgent(view: ReadScope, agentId: string): Query<StateCount>[] {
  const toCount = (row: Row): StateCount => [String(row.state) as SessionState, Number(row.count)];
  if (reachesAgent(view.scope, agentId)) {
    const sql = `SELECT key AS state, value AS count FROM agents AS a, json_each(a.body, '$.sessionStates') WHERE a.id = ?`;
    return [query(toCount, sql, columnText(agentId))];
  }
  const { sql, args } = allOf(inAgent(agentId), ...scopeOf(view));
  return [query(toCount, `SELECT state, count(*) AS count FROM sessions WHERE ${sql} GROUP BY state`, ...args)];
}

export const AGENT_GROUP = 'agent';

/** @param rows with one extra row if there are more */
export function agentPageOf(rows: readonly SessionSummary[], limit: number) {
  return pageOf(rows, limit, (last) => cursorText({ group: AGENT_GROUP, at: last.lastEventAt, id: last.id }));
}

export function ofAgent(
  view: Pick<ReadScope, 'scope'>,
  agentId: string,
  after: ListCursor | null,
  limit: number,
): Query<Row> {
  return newest([inAgent(agentId), ...scopeOf(view)], after, limit);
}

export interface SessionFilter {
  /** Matches any of these states; all if empty. */
  states: readonly SessionState[];
  /** Matches any of these; all if empty. */
  listed: readonly ListedState[];
  agentId: string | null;
  /** In lower case. */
  words: readonly string[];
}

const EVERY_SESSION: SessionFilter = { states: [], listed: [], agentId: null, words: [] };

const scopeOf = ({ scope }: Pick<ReadScope, 'scope'>): Condition[] =>
  listedScope(scope).kind === 'everything' ? [] : [{ sql: listedSessionsIn(scope), args: [] }];
function inState(state: SessionState, { listed }: Pick<SessionFilter, 'listed'>): Condition[] {
  const condition = { sql: 'state = ?', args: [state] };
  const other = LISTED_AS[state];
  const [hasOwn, hasOther] = [listed.includes(state), other !== undefined && listed.includes(other)];
  if (listed.length === 0 || (hasOwn && (hasOther || other === undefined))) return [condition];
  if (other !== undefined && hasOther) return [condition, { sql: 'listed_as = ?', args: [other] }];
  return [condition, { sql: hasOwn ? 'listed_as IS NULL' : 'FALSE', args: [] }];
}

/** True if sessions in a state may be listed under one of the wanted states. */
function isListed(state: SessionState, listed: readonly ListedState[]): boolean {
  return listed.length === 0 || [state, LISTED_AS[state]].some((one) => one !== undefined && listed.includes(one));
}
const inAgent = (agentId: string): Condition => ({ sql: 'agent_id = ?', args: [columnText(agentId)] });

/**
 * The full-text table narrows the search to sessions that may match. The table excludes working sessions, which are few
 * and change all the time.
 */
function conditionsOf({ agentId, words }: SessionFilter): Condition[] {
  const conditions = agentId === null ? [] : [inAgent(agentId)];
  const parts = words.map((text) => ({ kind: 'text' as const, text }));
  const match = parts.length === 0 ? null : trigramQuery({ kind: 'all', parts });
  if (match !== null) {
    const sql = `(state = 'working' OR number IN (SELECT rowid FROM session_search WHERE session_search MATCH ?))`;
    conditions.push({ sql, args: [match] });
  }
  for (const word of words) conditions.push({ sql: 'instr(words, ?) > 0', args: [columnText(word)] });
  return conditions;
}

function newest(conditions: readonly Condition[], after: ListCursor | null, limit: number): Query<Row> {
  const place = { sql: '(last_event_at, id) < (?, ?)', args: after === null ? [] : [after.at, columnText(after.id)] };
  const { sql, args } = allOf(...conditions, after === null ? null : place);
  const text = `SELECT ${COLUMNS} FROM sessions WHERE ${sql} ORDER BY last_event_at DESC, id DESC LIMIT ?`;
  return query(rawRow, text, ...args, limit);
}

function countOf(listed: readonly Condition[], found: readonly Condition[]): Query<number> {
  const { sql, args } = allOf(...listed, ...found);
  const most = found.length > 0 ? MAX_FOUND_COUNTED : MAX_COUNTED;
  const text = `SELECT count(*) AS count FROM (SELECT 1 FROM sessions WHERE ${sql} LIMIT ${most})`;
  return query((row) => Number(row.count), text, ...args);
}

function pageOf(
  rows: readonly SessionSummary[],
  limit: number,
  cursorOfRow: (last: SessionSummary) => string,
): Pick<SessionList, 'sessions' | 'hasMore' | 'next'> {
  const sessions = rows.slice(0, limit);
  const hasMore = rows.length > limit;
  const last = sessions.at(-1);
  return { sessions, hasMore, next: hasMore && last !== undefined ? cursorOfRow(last) : null };
}

function cursorBehind({ state, lastEventAt, id }: SessionSummary): string {
  return cursorText({ group: state, at: lastEventAt, id });
}

function newestFirst(sessions: SessionSummary[]): SessionSummary[] {
  return sessions.sort((a, b) => b.lastEventAt - a.lastEventAt || (a.id < b.id ? 1 : -1));
}

/** @returns null for an unknown session */
export async function readSession(view: ReadScope, sessionId: string): Promise<SessionDetail | null> {
  const sql = `SELECT ${COLUMNS} FROM sessions WHERE id = ? AND ${sessionsIn(view.scope, 'id')}`;
  const { position, found } = await readSnapshot(view, [query(sessionFromRow, sql, columnText(sessionId))]);
  const [session] = found[0];
  return session === undefined ? null : { position, session };
}
