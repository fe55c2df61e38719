import type { Database } from '@/db/client';
import {
  changedRows,
  eventsOfSession,
  eventsOfSessions,
  linesOfAgent,
  linesOfAgents,
  type Replay,
  type Row,
  type RowLimits,
  type RowStatement,
  replayedRows,
} from './rows';

/** What somebody listens to. */
export interface Wanted {
  fleet: boolean;
  sessionIds: readonly string[];
  agentIds: readonly string[];
}

export interface RowPage {
  /** In position order. */
  rows: Row[];
  /** Everything wanted in (after, upTo] is in `rows`; of tasks and obligations, what replayedRows tells of. */
  upTo: number;
  /** Nothing wanted lies between `upTo` and `newest`. */
  complete: boolean;
  /** The newest commit this read saw. */
  newest: number;
}

/**
 * `near`: one range over everything since `after`, for the tailer. A replay: one seek per topic, for catching up, and of
 * the fleet's tasks and obligations only what somebody who resumes must hear of.
 */
export type Reach = 'near' | Replay;

/** Of what resumes after a position, before its first page. */
export function replayFrom(after: number): Replay {
  return { from: after, toldOf: Number.MAX_SAFE_INTEGER };
}

/** The same behind a page: what was open when that was read may have been told as open. */
export function replayBehind({ from, toldOf }: Replay, { newest }: RowPage): Replay {
  return { from, toldOf: Math.min(toldOf, newest) };
}

/** Less than this per topic would make a page of many topics a page of nothing. */
const MIN_TOPIC_BYTES = 64 * 1024;

/**
 * Reads what was wanted after a position, over all kinds of rows, in one read transaction.
 *
 * Ordering: by position. Where a statement's limit cut its rows off, the page ends there for all statements.
 * Failure: throws what the database throws; nothing is remembered, so the same call may be made again.
 *
 * A reader that goes on from `upTo` misses nothing even when rows behind it change meanwhile: deltas fold into the
 * row of the last one and fleet rows move to a greater position, so both are met again, and whole, further on.
 */
export async function readAfter(
  database: Database,
  wanted: Wanted,
  after: number,
  reach: Reach,
  limits: RowLimits,
): Promise<RowPage> {
  const statements = statementsFor(wanted, after, reach, limits);
  const [counter, ...results] = await (reach === 'near' ? database.tail : database.reader).batch(
    ['SELECT position FROM counter', ...statements.map(({ sql, args }) => ({ sql, args }))],
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
  return { rows: page, upTo, complete: upTo === newest, newest };
}

/** Between which positions a stream can be resumed. */
export interface Bounds {
  /** Rows after this one are all there. Nothing is ever pruned so far, so it is the beginning. */
  oldest: number;
  /** The newest position, 0 when nothing was ever written. */
  latest: number;
}

export async function readBounds(database: Database): Promise<Bounds> {
  const { rows } = await database.reader.execute('SELECT position FROM counter');
  return { oldest: 0, latest: Number(rows[0]?.position ?? 0) };
}

function statementsFor(wanted: Wanted, after: number, reach: Reach, limits: RowLimits): RowStatement[] {
  const { sessionIds, agentIds } = wanted;
  const topics = sessionIds.length + agentIds.length;
  const each = { ...limits, bytes: Math.max(MIN_TOPIC_BYTES, Math.floor(limits.bytes / Math.max(1, topics))) };
  const statements: RowStatement[] = [];
  if (reach === 'near') {
    if (sessionIds.length > 0) statements.push(eventsOfSessions(sessionIds, after, limits));
    if (agentIds.length > 0) statements.push(linesOfAgents(agentIds, after, limits));
  } else {
    for (const sessionId of sessionIds) statements.push(eventsOfSession(sessionId, after, each));
    for (const agentId of agentIds) statements.push(linesOfAgent(agentId, after, each));
  }
  if (wanted.fleet) {
    const fleet = { ...limits, bytes: Math.max(MIN_TOPIC_BYTES, limits.bytes) };
    for (const kind of ['session', 'agent'] as const) statements.push(changedRows(kind, after, fleet));
    for (const kind of ['task', 'obligation'] as const) {
      if (reach === 'near') statements.push(changedRows(kind, after, fleet));
      else statements.push(...replayedRows(kind, after, reach, sessionIds, fleet));
    }
  }
  return statements;
}
