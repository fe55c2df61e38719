import type { Scope } from '@interlude/protocol/scope';
import type { Database } from '@/db/client';
import { positionIn } from '@/db/scope-sql';
import {
  changedRows,
  type Replay,
  type Row,
  type RowLimits,
  type RowStatement,
  replayedRows,
  rowsOfTopics,
  topicRows,
} from './rows';

/** What a reader listens to. */
export interface Wanted {
  fleet: boolean;
  sessionIds: readonly string[];
  agentIds: readonly string[];
  /** The part of the fleet whose rows are read. Whoever asks for sessions and logs has looked that they are in it. */
  scope: Scope;
}

export interface RowPage {
  /** In position order. */
  rows: Row[];
  /** Everything wanted in (after, upTo] is in `rows`; of tasks, obligations and inbox items, what replayedRows selects. */
  upTo: number;
  /** Nothing wanted lies between `upTo` and `newest`. */
  complete: boolean;
  /** The newest commit that this read saw. */
  newest: number;
  /** The newest change of a row of the fleet that had been removed by then. */
  removedUpTo: number;
}

/**
 * `near`: one range over everything since `after`, for the tailer. A replay: one seek per topic, for catching up; of the
 * fleet's tasks, obligations and inbox items, only those that a resuming reader must hear of.
 */
export type Reach = 'near' | Replay;

/** The replay of a reader that resumes after a position, before its first page. */
export function replayFrom(after: number): Replay {
  return { from: after, toldOf: Number.MAX_SAFE_INTEGER };
}

/** The same after a page: what was open when the page was read may have been told as open. */
export function replayBehind({ from, toldOf }: Replay, { newest }: RowPage): Replay {
  return { from, toldOf: Math.min(toldOf, newest) };
}

/** With less than this per topic, a page of many topics could be nearly empty. */
const MIN_TOPIC_BYTES = 64 * 1024;

/**
 * Reads what is wanted after a position, over all kinds of rows, in one read transaction.
 *
 * Ordering: by position. If a limit cuts off one statement's rows, the page ends there for all statements.
 * Failure: throws what the database throws; nothing is remembered, so the same call can be made again.
 *
 * A reader that goes on from `upTo` misses nothing even if rows it has passed change meanwhile: deltas fold into the row
 * of the last one and fleet rows move to a greater position, so it meets both again further on, complete.
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

/** The positions between which a stream can be resumed. */
export interface Bounds {
  /** Whoever has what came up to here misses nothing. Retention has removed some of what came before, unless it is 0. */
  oldest: number;
  /** The newest position that the reader may know of, 0 when nothing was ever written. */
  latest: number;
  /** The newest there is. */
  newest: number;
  /** The newest change of a row of the fleet that has been removed; 0 where none is asked for. */
  removedUpTo: number;
}

/** @param wanted retention removes the events of each session by itself, and rows of the fleet from all of it */
export async function readBounds({ reader }: Database, { scope, sessionIds, fleet }: Wanted): Promise<Bounds> {
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
  // what was removed may be of others: whoever has all of their own misses nothing
  const oldest = Math.max(cut, Math.min(removedUpTo, latest));
  return { oldest, latest, newest, removedUpTo };
}

function statementsFor(wanted: Wanted, after: number, reach: Reach, limits: RowLimits): RowStatement[] {
  const { sessionIds, agentIds, scope } = wanted;
  const topics = sessionIds.length + agentIds.length;
  const each = { ...limits, bytes: Math.max(MIN_TOPIC_BYTES, Math.floor(limits.bytes / Math.max(1, topics))) };
  const statements: RowStatement[] = [];
  for (const [topic, ids] of [['session', sessionIds] as const, ['logs', agentIds] as const]) {
    if (reach !== 'near') for (const id of ids) statements.push(topicRows(topic, id, after, each));
    else if (ids.length > 0) statements.push(rowsOfTopics(topic, ids, after, limits));
  }
  if (wanted.fleet) {
    const fleet = { ...limits, bytes: Math.max(MIN_TOPIC_BYTES, limits.bytes) };
    for (const kind of ['session', 'agent'] as const) statements.push(changedRows(kind, scope, after, fleet));
    for (const kind of ['task', 'obligation', 'inbox'] as const) {
      if (reach === 'near') statements.push(changedRows(kind, scope, after, fleet));
      else statements.push(...replayedRows(kind, scope, after, reach, sessionIds, fleet));
    }
  }
  return statements;
}
