import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import type { InboxMarks } from '@interlude/protocol/inbox';
import { positionFromNumber } from '@interlude/protocol/position';
import type { InStatement } from '@libsql/client';
import { inboxColumns, inboxItemFromRow } from '@/db/read-model-rows';
import { type ResultRows, runInOrder } from '@/db/reader';
import { columnText } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { appendFacts } from '@/lib/server/ingest/append-facts';

/**
 * Removes some of a session's oldest turns with their tasks and replies, and records that in its log. removeOldEvents
 * removes their events afterwards, when they are no longer shown.
 *
 * Ordering: oldest first. Turns, tasks, replies, the log entry and `removed_up_to` change in one transaction.
 * Failure: runs inside the caller's transaction and commits nothing itself.
 *
 * @returns true if anything was removed, and the caller must call again
 */
export async function removeOldTurns(
  transaction: WriteTransaction,
  session: string,
  limit: Limit,
  now: number,
): Promise<boolean> {
  const sessionId = columnText(session);
  const cut = await findCut(transaction, sessionId, limit);
  if (cut === null) return false;
  const { agentId, upTo } = cut;
  const args = [sessionId, upTo];
  const turns = cut.turnsBefore + cut.turns;
  const [unplaced, last, detached, results] = await transaction.batch([
    { sql: UNPLACED_TASKS, args },
    { sql: LAST_PART, args },
    { sql: DETACHED_TASKS, args },
    { sql: UNDELIVERED, args },
  ]);
  const lastId = last?.rows[0]?.entity_id ?? cut.lastId;
  const removed = { upTo: positionFromNumber(upTo), turns, ...(lastId === null ? {} : { lastId: String(lastId) }) };
  const value = { up_to: removed.upTo, turns };
  const event: AgUiEvent = { type: 'CUSTOM', name: CUSTOM.removed, value, metadata: { interlude: { removed } } };
  const continued = (unplaced?.rows ?? []).map(
    ({ id, run_id: runId }): AgUiEvent => ({
      type: 'CUSTOM',
      name: CUSTOM.taskGoesOn,
      value: { task_id: id, ...(runId === null ? {} : { run_id: runId }) },
    }),
  );
  const marks = new Map<string, InboxMarks>();
  for (const row of results?.rows ?? []) {
    const { id, seenAt, snoozedUntil, claim } = inboxItemFromRow(row);
    marks.set(id, { seenAt, snoozedUntil, claim, doneAt: now });
  }
  await appendFacts(transaction, now, [
    ...[event, ...continued].map((one) => ({ agentId, sessionId, event: one })),
    ...(marks.size === 0 ? [] : [{ kind: 'inbox-marked' as const, agentId, marks }]),
  ]);
  const position = await transaction.position();
  const kept = (detached?.rows ?? []).map((row) => Number(row.position));
  const order = Object.fromEntries(kept.map((task, index) => [task, index + 1]));
  await transaction.moveTo(position + kept.length);
  await transaction.batch([
    { sql: recordRemoval('tasks', OLD_TASKS), args },
    { sql: recordRemoval('obligations', OLD_REPLIES), args },
    { sql: `DELETE FROM tasks WHERE ${OLD_TASKS}`, args },
    { sql: 'DELETE FROM turns WHERE session_id = ?1 AND position <= ?2', args },
    { sql: `DELETE FROM obligations WHERE ${OLD_REPLIES}`, args },
    { sql: DETACH_TASKS, args: [sessionId, position, JSON.stringify(order)] },
    // The newest log entry includes the older ones.
    {
      sql: `DELETE FROM events WHERE session_id = ?1 AND ${OF_RETENTION} AND name = '${CUSTOM.removed}' AND position < (
        SELECT max(position) FROM events WHERE session_id = ?1 AND ${OF_RETENTION} AND name = '${CUSTOM.removed}')`,
      args: [sessionId],
    },
    { sql: 'UPDATE sessions SET removed_up_to = ?2 WHERE id = ?1', args },
  ]);
  return true;
}

/** Condition: unchanged by events after the cut. A row's position follows the event that last changed it. */
const IS_UNCHANGED = `updated_position < ifnull((
  SELECT min(position) FROM events WHERE session_id = ?1 AND position > ?2 AND name IS NOT '${CUSTOM.removed}'), 9e15)`;

/** A task presumed lost may still be running when its runner returns. */
const MAY_RUN = `(status = 'running' OR presumed IS NOT NULL)`;

/** Condition: the task has ended and is unchanged after the cut, or a turn before the cut answered it. */
const IS_OVER = `NOT ${MAY_RUN} AND (${IS_UNCHANGED} OR EXISTS (
  SELECT 1 FROM turns WHERE session_id = ?1 AND id = tasks.body->>'$.answeredInTurnId' AND position <= ?2))`;

const OLD_TASKS = `session_id = ?1 AND position <= ?2 AND ${IS_OVER}`;
/** Open inbox items of removed tasks, which are completed because no result is left to deliver. */
const UNDELIVERED = `SELECT ${inboxColumns('i')} FROM inbox AS i
  WHERE i.kind = 'undelivered' AND i.done_at IS NULL AND i.session_id = ?1
    AND i.body->>'$.task.position' IN (SELECT CAST(position AS TEXT) FROM tasks WHERE ${OLD_TASKS})`;
const OLD_REPLIES = `session_id = ?1 AND position <= ?2 AND state <> 'owed' AND ${IS_UNCHANGED}`;

/** Matches the partial index of retention's events. */
const OF_RETENTION = `name IN ('${CUSTOM.removed}', '${CUSTOM.taskGoesOn}')`;

/** Maximum running tasks shown again per removal; later removals show the rest. */
const MAX_PLACED = 500;

/** Running tasks that no remaining turn shows. An event shows them again, so people can follow and stop them. */
const UNPLACED_TASKS = `SELECT body->>'$.id' AS id, body->>'$.runId' AS run_id FROM tasks
  WHERE session_id = ?1 AND position <= ?2 AND ${MAY_RUN} AND (id, ifnull(run_id, '')) NOT IN (
    SELECT entity_id, ifnull(payload->>'$.value.run_id', '') FROM events
    WHERE session_id = ?1 AND ${OF_RETENTION} AND name = '${CUSTOM.taskGoesOn}' AND position > ?2 AND entity_id IS NOT NULL)
  ORDER BY position LIMIT ${MAX_PLACED}`;

/** The last removed message or call. Parts that a snapshot repeats up to there count as removed as well. */
const LAST_PART = `SELECT entity_id FROM events WHERE session_id = ?1 AND position <= ?2
  AND position > (SELECT removed_up_to FROM sessions WHERE id = ?1)
  AND entity_id IS NOT NULL AND type <> 'CUSTOM' AND turn_id NOT LIKE 'task:%' ORDER BY position DESC LIMIT 1`;

/** Remaining tasks that started since the last cut and lose a turn. Their rows are published again. */
const DETACHED_TASKS = `SELECT position FROM tasks
  WHERE session_id = ?1 AND position > (SELECT removed_up_to FROM sessions WHERE id = ?1)
    AND position < ifnull((SELECT min(position) FROM turns WHERE session_id = ?1 AND position > ?2), ?2 + 1)
    AND NOT (position <= ?2 AND ${IS_OVER}) AND EXISTS (
      SELECT 1 FROM turns WHERE session_id = ?1 AND position <= ?2
        AND id IN (tasks.body->>'$.startedInTurnId', tasks.body->>'$.answeredInTurnId'))
  ORDER BY position`;

/**
 * An ended task keeps its position, which shows if the task has changed since. `?3` maps task positions to their order
 * after position `?2`.
 */
const DETACH_TASKS = `UPDATE tasks SET
    updated_position = CASE WHEN ${MAY_RUN} THEN ?2 + json_extract(?3, '$."' || position || '"') ELSE updated_position END,
    body = json_set(body, '$.startedInTurnId', ${existingTurn('startedInTurnId')},
      '$.answeredInTurnId', ${existingTurn('answeredInTurnId')})
  WHERE session_id = ?1 AND position IN (SELECT CAST(key AS INTEGER) FROM json_each(?3))`;

function existingTurn(field: string): string {
  return `(SELECT body->>'$.${field}' WHERE EXISTS (
    SELECT 1 FROM turns WHERE turns.session_id = ?1 AND turns.id = body->>'$.${field}'))`;
}

/** Limit of a removal: history up to a position that was received before a time. */
export interface Limit {
  position: number;
  before: number;
}

/** A cut of a session's log: retention removes turns that started up to `upTo`. */
interface Cut {
  agentId: string;
  upTo: number;
  /** Number of turns to remove, and of turns removed before. Excludes turns of kind `none`. */
  turns: number;
  turnsBefore: number;
  /** The last message or call removed before. */
  lastId: string | null;
}

interface BatchReader {
  batch(statements: InStatement[]): Promise<ResultRows[]>;
}

/**
 * Maximum turns per transaction, for which ingest may have to wait. Exceeded only if fewer can't be removed alone; -1:
 * all.
 */
const TURNS_AT_ONCE = [200, 2_000, -1];

/**
 * Finds the latest cut of a session's log, at most at `limit`. No turn before the cut continues after it, and nothing
 * before it is open: no turn, pending reply, request or command. A running task does not keep its turn, because its card
 * stays.
 *
 * @returns null if nothing can be removed
 */
export async function findCut(reader: BatchReader, sessionId: string, limit: Limit): Promise<Cut | null> {
  const [sessions, obligations, commands] = await reader.batch([
    {
      sql: `SELECT agent_id, removed_up_to, places->>'$.openTurn.position' AS open_turn,
          ifnull(body->>'$.removed.turns', 0) AS turns_before, body->>'$.removed.lastId' AS last_id,
          (SELECT min(CAST(value->>'$.openedPosition' AS INTEGER)) FROM json_each(memory, '$.fold.pendingRequests')) AS asked,
          memory->>'$.fold.hasMorePending' AS has_more_asked
        FROM sessions WHERE id = ?`,
      args: [sessionId],
    },
    {
      sql: `SELECT min(position) AS position FROM obligations WHERE session_id = ? AND state = 'owed'`,
      args: [sessionId],
    },
    {
      sql: `SELECT min(position) AS position FROM commands WHERE state IN ('queued', 'delivered')
        AND agent_id = (SELECT agent_id FROM sessions WHERE id = ?1) AND session_id = ?1`,
      args: [sessionId],
    },
  ]);
  const session = sessions?.rows[0];
  // The positions of further open requests are unknown.
  if (session === undefined || Number(session.has_more_asked ?? 0) === 1) return null;
  const open = [session.open_turn, session.asked, obligations?.rows[0]?.position, commands?.rows[0]?.position];
  const firstOpen = Math.min(...open.filter((position) => position != null).map(Number));
  const most = { ...limit, position: Math.min(limit.position, firstOpen - 1) };
  for (const many of TURNS_AT_ONCE) {
    const found = await cutAfterTurns(reader, sessionId, most, many);
    if (found.upTo > Number(session.removed_up_to) || found.count > 0) {
      const agentId = String(session.agent_id);
      const lastId = session.last_id === null ? null : String(session.last_id);
      return { agentId, upTo: found.upTo, turns: found.shown, turnsBefore: Number(session.turns_before), lastId };
    }
  }
  return null;
}

/** The cut after this many turns, or fewer. */
async function cutAfterTurns(reader: BatchReader, sessionId: string, limit: Limit, many: number) {
  const [next] = await reader.batch([
    {
      sql: 'SELECT position FROM turns WHERE session_id = ? ORDER BY position LIMIT 1 OFFSET ?',
      args: [sessionId, many],
    },
  ]);
  const first = many < 0 ? undefined : next?.rows[0]?.position;
  const position = first == null ? limit.position : Math.min(limit.position, Number(first) - 1);
  const cut = await beforeKeptTurns(reader, sessionId, { ...limit, position });
  const [turns, events] = await reader.batch([
    {
      sql: `SELECT count(*) AS count, count(*) FILTER (WHERE kind <> 'none') AS shown FROM turns
        WHERE session_id = ? AND position <= ?`,
      args: [sessionId, cut],
    },
    {
      sql: `SELECT position FROM events WHERE session_id = ? AND position <= ? AND name IS NOT '${CUSTOM.removed}'
        ORDER BY position DESC LIMIT 1`,
      args: [sessionId, cut],
    },
  ]);
  const [counts] = turns?.rows ?? [];
  return {
    upTo: Number(events?.rows[0]?.position ?? 0),
    count: Number(counts?.count),
    shown: Number(counts?.shown),
  };
}

/**
 * Turns are removed whole. A turn that continues after the cut keeps all turns that started after it. So does a turn
 * that is too young, because positions don't follow time if the server's clock was once wrong.
 */
async function beforeKeptTurns(reader: BatchReader, sessionId: string, { position, before }: Limit): Promise<number> {
  for (let cut = position; ; ) {
    const [kept] = await reader.batch([
      {
        sql: `SELECT min(position) AS position FROM turns WHERE session_id = ?1 AND position <= ?2 AND (
            EXISTS (SELECT 1 FROM events WHERE session_id = ?1 AND turn_id = turns.id AND position > ?2)
            OR (SELECT received_at FROM events WHERE session_id = ?1 AND turn_id = turns.id
              ORDER BY position DESC LIMIT 1) >= ?3)`,
        args: [sessionId, cut, before],
      },
    ]);
    const first = kept?.rows[0]?.position ?? null;
    if (first === null) return cut;
    cut = Number(first) - 1;
  }
}

export function batchingReader(reader: { execute(statement: InStatement): Promise<ResultRows> }): BatchReader {
  return { batch: (statements) => runInOrder(statements, (statement) => reader.execute(statement)) };
}

/**
 * Records that fleet rows are about to be removed, because a reader from before their last change can't resume (see
 * readBounds). Runs in the removing transaction, before the removal.
 *
 * @param where SQL condition for the rows
 */
export function recordRemoval(table: 'tasks' | 'obligations' | 'inbox', where: string): string {
  return `UPDATE counter SET removed_up_to = max(removed_up_to, ifnull((
    SELECT max(updated_position) FROM ${table} WHERE ${where}), 0))`;
}
