import { sessionText } from '@interlude/protocol/list-search';
import { LIST_LIMIT } from '@interlude/protocol/queries';
import type { SessionDetail, SessionList, SessionSummary } from '@interlude/protocol/read-models';
import { listedScope, reachesAgent } from '@interlude/protocol/scope';
import { listedStateOf } from '@interlude/protocol/session-predicates';
import {
  LISTED_AS,
  LISTED_STATES,
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

/** One page of the matching sessions, in the order of `groupsOf` and by newest event. */
export async function readSessionPage(
  view: ReadScope,
  { after, limit }: { after: ListCursor | null; limit: number },
  filter: SessionFilter = EVERY_SESSION,
): Promise<SessionList> {
  const groups = groupsOf(filter);
  const from = after === null ? 0 : groups.indexOf(after.group as ListedState);
  const matching = [...scopeOf(view), ...conditionsOf(filter)];
  const wanted = groups.slice(from).flatMap((group) => {
    const parts = partsOf(group, filter).map(({ conditions }) => [...conditions, ...matching]);
    return parts.length === 0 ? [] : newestOf(parts, group === after?.group ? after : null, limit + 1);
  });
  const counted = groups.flatMap((group) => partsOf(group, { ...filter, states: [] }));
  const { position, found } = await readSnapshot<(number | Row)[]>(view, [
    ...counted.map(({ conditions }) => countOf([...conditions, ...scopeOf(view)], conditionsOf(filter))),
    ...wanted,
  ]);
  const counts = noSessions();
  for (const [index, { state }] of counted.entries()) counts[state] += (found[index]?.[0] as number | undefined) ?? 0;
  const rows = (found.slice(counted.length) as Row[][]).flat().slice(0, limit + 1);
  const sessions = await new Yielder().map(rows, sessionFromRow);
  return { position, counts, ...pageOf(sessions, limit, cursorBehind(filter)) };
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
    cursorBehind: cursorBehind(filter),
    groups: groupsOf(filter),
  };
  const { page, rows: sessions, next } = await searchRedacted<SessionList, SessionSummary>(listing, words, place);
  const counts = countsOf(page.counts, sessions, ({ state }) => state);
  return { position: page.position, counts, sessions, hasMore: next !== null, next };
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
  return LISTED_STATES.flatMap((listed) =>
    partsOf(listed, LISTED_SESSIONS).map(({ conditions }) => {
      const { toRow, ...counted } = countOf([...conditions, ...scopeOf(view)], []);
      return { ...counted, toRow: (row): ListedCount => [listed, toRow(row)] };
    }),
  );
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
/** All sessions in the order in which the dashboard lists them. */
export const LISTED_SESSIONS: SessionFilter = { ...EVERY_SESSION, listed: LISTED_STATES };

/** The groups of a list: with `listed` its states, in the order of LISTED_STATES. */
export function groupsOf({ listed }: Pick<SessionFilter, 'listed'>): readonly ListedState[] {
  return listed.length === 0 ? SESSION_STATES : LISTED_STATES.filter((state) => listed.includes(state));
}

const scopeOf = ({ scope }: Pick<ReadScope, 'scope'>): Condition[] =>
  listedScope(scope).kind === 'everything' ? [] : [{ sql: listedSessionsIn(scope), args: [] }];

/** The sessions of a group: those in its state, and with `listed` also those listed under it. */
function partsOf(
  group: ListedState,
  { states, listed }: Pick<SessionFilter, 'states' | 'listed'>,
): { state: SessionState; conditions: Condition[] }[] {
  return SESSION_STATES.filter((state) => states.length === 0 || states.includes(state)).flatMap((state) => {
    const inState = { sql: 'state = ?', args: [state] };
    if (state === group) {
      const isOwn = { sql: 'listed_as IS NULL', args: [] };
      const hasOthers = listed.length > 0 && LISTED_AS[state] !== undefined;
      return { state, conditions: hasOthers ? [inState, isOwn] : [inState] };
    }
    const isListed = listed.length > 0 && LISTED_AS[state] === group;
    return isListed ? { state, conditions: [inState, { sql: 'listed_as = ?', args: [group] }] } : [];
  });
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

/** The newest sessions of several parts together. */
function newestOf(parts: readonly Condition[][], after: ListCursor | null, limit: number): Query<Row> {
  const each = parts.map((conditions) => newest(conditions, after, limit));
  const [first] = each;
  if (each.length === 1 && first !== undefined) return first;
  const all = each.map(({ sql }) => `SELECT * FROM (${sql})`).join(' UNION ALL ');
  const sql = `${all} ORDER BY last_event_at DESC, id DESC LIMIT ?`;
  return query(rawRow, sql, ...each.flatMap(({ args }) => args), limit);
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

const cursorBehind =
  ({ listed }: Pick<SessionFilter, 'listed'>) =>
  (session: SessionSummary): string => {
    const group = listed.length === 0 ? session.state : listedStateOf(session);
    return cursorText({ group, at: session.lastEventAt, id: session.id });
  };

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
