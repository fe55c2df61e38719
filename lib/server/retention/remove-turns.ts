import { type AgUiEvent, CUSTOM } from '@interlude/protocol/ag-ui';
import type { InboxMarks } from '@interlude/protocol/inbox';
import { positionFromNumber } from '@interlude/protocol/position';
import type { InStatement } from '@libsql/client';
import { INBOX_ROW, inboxItemFromRow } from '@/db/read-model-rows';
import { type ResultRows, runInOrder } from '@/db/reader';
import { columnText } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { appendFacts } from '@/lib/server/ingest/append-facts';

/**
 * Removes the oldest turns of a session, some at a time, with the tasks and replies that belong to them, and says so in
 * its log. Their events go afterwards, see remove-events.ts: nobody is shown those any more.
 *
 * Ordering: oldest first. Turns, tasks, replies, what is told and `removed_up_to` change in one transaction.
 * Failure: it runs inside the caller's transaction and commits nothing itself.
 *
 * @returns whether anything went; call again while it did
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
  const [going, last, losing, results] = await transaction.batch([
    { sql: WITHOUT_PLACE, args },
    { sql: LAST_SAID, args },
    { sql: LOSING_TURNS, args },
    { sql: UNDELIVERED, args },
  ]);
  const lastId = last?.rows[0]?.entity_id ?? cut.lastId;
  const removed = { upTo: positionFromNumber(upTo), turns, ...(lastId === null ? {} : { lastId: String(lastId) }) };
  const value = { up_to: removed.upTo, turns };
  const event: AgUiEvent = { type: 'CUSTOM', name: CUSTOM.removed, value, metadata: { interlude: { removed } } };
  const goOn = (going?.rows ?? []).map(
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
    ...[event, ...goOn].map((said) => ({ agentId, sessionId, event: said })),
    ...(marks.size === 0 ? [] : [{ kind: 'inbox-marked' as const, agentId, marks }]),
  ]);
  const told = await transaction.position();
  const kept = (losing?.rows ?? []).map(({ position }) => Number(position));
  const places = Object.fromEntries(kept.map((position, at) => [position, at + 1]));
  await transaction.moveTo(told + kept.length);
  await transaction.batch([
    { sql: recordRemoval('tasks', OLD_TASKS), args },
    { sql: recordRemoval('obligations', OLD_REPLIES), args },
    { sql: `DELETE FROM tasks WHERE ${OLD_TASKS}`, args },
    { sql: 'DELETE FROM turns WHERE session_id = ?1 AND position <= ?2', args },
    { sql: `DELETE FROM obligations WHERE ${OLD_REPLIES}`, args },
    { sql: FORGET_TURNS, args: [sessionId, told, JSON.stringify(places)] },
    // the newest says all that the older ones do
    {
      sql: `DELETE FROM events WHERE session_id = ?1 AND ${TOLD} AND name = '${CUSTOM.removed}' AND position < (
        SELECT max(position) FROM events WHERE session_id = ?1 AND ${TOLD} AND name = '${CUSTOM.removed}')`,
      args: [sessionId],
    },
    { sql: 'UPDATE sessions SET removed_up_to = ?2 WHERE id = ?1', args },
  ]);
  return true;
}

/** Nothing behind the cut has changed it: rows take their positions after the events that change them. */
const IS_AS_IT_WAS = `updated_position < ifnull((
  SELECT min(position) FROM events WHERE session_id = ?1 AND position > ?2 AND name IS NOT '${CUSTOM.removed}'), 9e15)`;

/** A task that is taken to be lost may turn out to run, when its runner is back. */
const MAY_RUN = `(status = 'running' OR presumed IS NOT NULL)`;

/** It has ended, and nothing came of it behind the cut; or the turn that answered it goes, too. */
const HAS_GONE = `NOT ${MAY_RUN} AND (${IS_AS_IT_WAS} OR EXISTS (
  SELECT 1 FROM turns WHERE session_id = ?1 AND id = tasks.body->>'$.answeredInTurnId' AND position <= ?2))`;

const OLD_TASKS = `session_id = ?1 AND position <= ?2 AND ${HAS_GONE}`;
/** The inbox items of those, which are done: no result is left to wake an agent with. */
const UNDELIVERED = `SELECT ${INBOX_ROW.columns('i')} FROM inbox AS i
  WHERE i.kind = 'undelivered' AND i.done_at IS NULL AND i.session_id = ?1
    AND i.body->>'$.task.position' IN (SELECT CAST(position AS TEXT) FROM tasks WHERE ${OLD_TASKS})`;
const OLD_REPLIES = `session_id = ?1 AND position <= ?2 AND state <> 'owed' AND ${IS_AS_IT_WAS}`;

/** What retention tells in a session's log, as its index has it. */
const TOLD = `name IN ('${CUSTOM.removed}', '${CUSTOM.taskGoesOn}')`;

/** Most tasks that are given a place at once; more with the next turns that go. */
const MOST_PLACED = 500;

/** The tasks that run and stand in no turn that is left: people see what they do, and can stop them. */
const WITHOUT_PLACE = `SELECT body->>'$.id' AS id, body->>'$.runId' AS run_id FROM tasks
  WHERE session_id = ?1 AND position <= ?2 AND ${MAY_RUN} AND (id, ifnull(run_id, '')) NOT IN (
    SELECT entity_id, ifnull(payload->>'$.value.run_id', '') FROM events
    WHERE session_id = ?1 AND ${TOLD} AND name = '${CUSTOM.taskGoesOn}' AND position > ?2 AND entity_id IS NOT NULL)
  ORDER BY position LIMIT ${MOST_PLACED}`;

/** The last message or call that goes: what a snapshot repeats up to there is gone, too. */
const LAST_SAID = `SELECT entity_id FROM events WHERE session_id = ?1 AND position <= ?2
  AND position > (SELECT removed_up_to FROM sessions WHERE id = ?1)
  AND entity_id IS NOT NULL AND type <> 'CUSTOM' AND turn_id NOT LIKE 'task:%' ORDER BY position DESC LIMIT 1`;

/** The tasks that stay, of those that have begun since the last cut, of which a turn goes: each is told again once. */
const LOSING_TURNS = `SELECT position FROM tasks
  WHERE session_id = ?1 AND position > (SELECT removed_up_to FROM sessions WHERE id = ?1)
    AND position < ifnull((SELECT min(position) FROM turns WHERE session_id = ?1 AND position > ?2), ?2 + 1)
    AND NOT (position <= ?2 AND ${HAS_GONE}) AND EXISTS (
      SELECT 1 FROM turns WHERE session_id = ?1 AND position <= ?2
        AND id IN (tasks.body->>'$.startedInTurnId', tasks.body->>'$.answeredInTurnId'))
  ORDER BY position`;

/**
 * One that has ended keeps its position: it says whether anything has come of it since. `?3` is their places in the order
 * of what is told, by their positions.
 */
const FORGET_TURNS = `UPDATE tasks SET
    updated_position = CASE WHEN ${MAY_RUN} THEN ?2 + json_extract(?3, '$."' || position || '"') ELSE updated_position END,
    body = json_set(body, '$.startedInTurnId', ${turnIfThere('startedInTurnId')},
      '$.answeredInTurnId', ${turnIfThere('answeredInTurnId')})
  WHERE session_id = ?1 AND position IN (SELECT CAST(key AS INTEGER) FROM json_each(?3))`;

function turnIfThere(field: string): string {
  return `(SELECT body->>'$.${field}' WHERE EXISTS (
    SELECT 1 FROM turns WHERE turns.session_id = ?1 AND turns.id = body->>'$.${field}'))`;
}

/** What may go: what stands up to a position, and was received before a time. */
export interface Limit {
  position: number;
  before: number;
}

/** Where a session's log is cut: what began up to there goes. */
interface Cut {
  agentId: string;
  upTo: number;
  /** How many turns go, without those of kind `none`, and how many have gone before. */
  turns: number;
  turnsBefore: number;
  /** The last message or call that has gone before. */
  lastId: string | null;
}

interface BatchReader {
  batch(statements: InStatement[]): Promise<ResultRows[]>;
}

/**
 * Most turns that go in one transaction, for which ingest may have to wait. More only where fewer can't go without the
 * others: -1 is all of them.
 */
const TURNS_AT_ONCE = [200, 2_000, -1];

/**
 * Where the log of a session can be cut, at most at `limit`. In front of the cut stands no turn that goes on behind it,
 * and nothing that is open: no turn, no reply that is owed, no request and no command. A task that runs is no reason to
 * keep the turn that started it: its card stays, with all that the task has said.
 *
 * @returns null if nothing can go
 */
export async function findCut(asking: BatchReader, sessionId: string, limit: Limit): Promise<Cut | null> {
  const [sessions, owed, commands] = await asking.batch([
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
  // of some requests it is not even known where they are
  if (session === undefined || Number(session.has_more_asked ?? 0) === 1) return null;
  const open = [session.open_turn, session.asked, owed?.rows[0]?.position, commands?.rows[0]?.position];
  const firstOpen = Math.min(...open.filter((position) => position != null).map(Number));
  const most = { ...limit, position: Math.min(limit.position, firstOpen - 1) };
  for (const many of TURNS_AT_ONCE) {
    const found = await cutOfMany(asking, sessionId, most, many);
    if (found.upTo > Number(session.removed_up_to) || found.count > 0) {
      const agentId = String(session.agent_id);
      const lastId = session.last_id === null ? null : String(session.last_id);
      return { agentId, upTo: found.upTo, turns: found.told, turnsBefore: Number(session.turns_before), lastId };
    }
  }
  return null;
}

/** The cut behind so many turns, or fewer. */
async function cutOfMany(asking: BatchReader, sessionId: string, limit: Limit, many: number) {
  const [next] = await asking.batch([
    {
      sql: 'SELECT position FROM turns WHERE session_id = ? ORDER BY position LIMIT 1 OFFSET ?',
      args: [sessionId, many],
    },
  ]);
  const first = many < 0 ? undefined : next?.rows[0]?.position;
  const position = first == null ? limit.position : Math.min(limit.position, Number(first) - 1);
  const cut = await beforeWhatStays(asking, sessionId, { ...limit, position });
  const [turns, events] = await asking.batch([
    {
      sql: `SELECT count(*) AS count, count(*) FILTER (WHERE kind <> 'none') AS told FROM turns
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
    told: Number(counts?.told),
  };
}

/**
 * A turn goes as a whole: with one that goes on behind the cut, all that began after it stays. So it does with one that is
 * too young after all: where the server's clock was once wrong, a position is no time.
 */
async function beforeWhatStays(asking: BatchReader, sessionId: string, { position, before }: Limit): Promise<number> {
  for (let cut = position; ; ) {
    const [staying] = await asking.batch([
      {
        sql: `SELECT min(position) AS position FROM turns WHERE session_id = ?1 AND position <= ?2 AND (
            EXISTS (SELECT 1 FROM events WHERE session_id = ?1 AND turn_id = turns.id AND position > ?2)
            OR (SELECT received_at FROM events WHERE session_id = ?1 AND turn_id = turns.id
              ORDER BY position DESC LIMIT 1) >= ?3)`,
        args: [sessionId, cut, before],
      },
    ]);
    const first = staying?.rows[0]?.position ?? null;
    if (first === null) return cut;
    cut = Number(first) - 1;
  }
}

/** The same outside a write. */
export function batchingReader(reader: { execute(statement: InStatement): Promise<ResultRows> }): BatchReader {
  return { batch: (statements) => runInOrder(statements, (statement) => reader.execute(statement)) };
}

/**
 * Notes that rows of the fleet are about to be removed: a reader from before their last change can't be told of it any
 * more, see readBounds. Runs in the transaction that removes them, in front of that.
 *
 * @param which of the rows, as SQL
 */
export function recordRemoval(table: 'tasks' | 'obligations' | 'inbox', which: string): string {
  return `UPDATE counter SET removed_up_to = max(removed_up_to, ifnull((
    SELECT max(updated_position) FROM ${table} WHERE ${which}), 0))`;
}
