import { columnText } from '@/db/column-text';
import type { WriteTransaction } from '@/db/writes';
import { appendFacts } from '@/lib/ingest/append-facts';
import { type AgUiEvent, CUSTOM } from '@/lib/protocol/ag-ui';
import { positionFromNumber } from '@/lib/protocol/position';
import { findCut } from './find-cut';

/**
 * Removes the oldest turns of a session, some at a time, with the tasks and replies that belong to them, and says so in
 * its log. Their events go afterwards, see remove-events.ts: nobody is shown those any more.
 *
 * Ordering: oldest first. Turns, tasks, replies, what is told and `removed_up_to` change in one transaction.
 * Failure: it runs inside the caller's transaction and commits nothing itself.
 *
 * @param limit the newest position that may go
 * @returns whether anything went; call again while it did
 */
export async function removeOldTurns(
  transaction: WriteTransaction,
  session: string,
  limit: number,
  now: number,
): Promise<boolean> {
  const sessionId = columnText(session);
  const cut = await findCut(transaction, sessionId, limit);
  if (cut === null) return false;
  const { agentId, upTo } = cut;
  transaction.touch(`agent:${agentId}`);
  const args = [sessionId, upTo];
  const turns = cut.turnsBefore + cut.turns;
  const removed = { upTo: positionFromNumber(upTo), turns };
  const value = { up_to: removed.upTo, turns };
  const event: AgUiEvent = { type: 'CUSTOM', name: CUSTOM.removed, value, metadata: { interlude: { removed } } };
  const { rows: going } = await transaction.execute({ sql: WITHOUT_PLACE, args });
  const goOn = going.map(
    ({ id, run_id: runId }): AgUiEvent => ({
      type: 'CUSTOM',
      name: CUSTOM.taskGoesOn,
      value: { task_id: id, ...(runId === null ? {} : { run_id: runId }) },
    }),
  );
  await appendFacts(
    transaction,
    now,
    [event, ...goOn].map((said) => ({ agentId, sessionId, event: said })),
  );
  const told = await transaction.position();
  const { rows } = await transaction.execute({
    sql: `SELECT position FROM tasks WHERE session_id = ?1 AND position < ifnull((
        SELECT min(position) FROM turns WHERE session_id = ?1 AND position > ?2), ?2 + 1)
      AND NOT (position <= ?2 AND ${HAS_GONE}) ORDER BY position`,
    args,
  });
  const kept = rows.map(({ position }) => Number(position));
  await transaction.moveTo(told + kept.length);
  await transaction.batch([
    { sql: `DELETE FROM tasks WHERE session_id = ?1 AND position <= ?2 AND ${HAS_GONE}`, args },
    { sql: 'DELETE FROM turns WHERE session_id = ?1 AND position <= ?2', args },
    {
      sql: `DELETE FROM obligations WHERE session_id = ?1 AND position <= ?2 AND state <> 'owed' AND ${IS_AS_IT_WAS}`,
      args,
    },
    { sql: FORGET_TURNS, args: [sessionId, told, JSON.stringify(kept)] },
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

/** It has ended, and nothing came of it behind the cut; or the turn that answered it goes, too. */
const HAS_GONE = `status <> 'running' AND (${IS_AS_IT_WAS} OR EXISTS (
  SELECT 1 FROM turns WHERE session_id = ?1 AND id = tasks.body->>'$.answeredInTurnId' AND position <= ?2))`;

/** What retention tells in a session's log, as its index has it. */
const TOLD = `name IN ('${CUSTOM.removed}', '${CUSTOM.taskGoesOn}')`;

/** The running tasks that stand in no turn that is left: people see what they do, and can stop them. */
const WITHOUT_PLACE = `SELECT body->>'$.id' AS id, body->>'$.runId' AS run_id FROM tasks WHERE session_id = ?1 AND position <= ?2 AND status = 'running'
  AND NOT EXISTS (SELECT 1 FROM events WHERE session_id = ?1 AND ${TOLD} AND name = '${CUSTOM.taskGoesOn}'
    AND position > ?2 AND entity_id = tasks.id AND payload->>'$.value.run_id' IS tasks.body->>'$.runId')
  ORDER BY position`;

/** Tasks that stay, of those that may have begun in a turn that is gone, are told again without it. */
const FORGET_TURNS = `UPDATE tasks SET updated_position = ?2 + kept.key + 1,
    body = json_set(body, '$.startedInTurnId', ${turnIfThere('startedInTurnId')},
      '$.answeredInTurnId', ${turnIfThere('answeredInTurnId')})
  FROM json_each(?3) AS kept WHERE session_id = ?1 AND position = kept.value`;

function turnIfThere(field: string): string {
  return `(SELECT body->>'$.${field}' WHERE EXISTS (
    SELECT 1 FROM turns WHERE turns.session_id = ?1 AND turns.id = body->>'$.${field}'))`;
}
