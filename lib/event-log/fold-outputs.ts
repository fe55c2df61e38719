import { columnText } from '@/db/column-text';
import { inPieces, runInTurns } from '@/db/json-pieces';
import { Pace } from '@/db/next-turn';
import type { WriteTransaction } from '@/db/write-queue';
import { type AgUiEvent, CUSTOM } from '@/lib/protocol/ag-ui';
import { fieldsOf } from '@/lib/protocol/fields';
import { appendOutput, type TaskOutput } from '@/lib/protocol/task-output';
import { stringifyWellFormed } from '@/lib/protocol/well-formed';
import { withInterlude } from '@/lib/protocol/with-interlude';
import type { EventRow } from './batch-rows';

/**
 * What a task writes comes in many pieces, of which only the newest are kept: once there are enough of them, those that
 * are stored become one row.
 *
 * Ordering: the one row stands where the last of them stood, and says `whole`. A reader that resumes before it finds it
 * ahead and puts it in place of what it had; one that is past it has all of it.
 * Failure: part of the batch's transaction. A task is left for the next time that it writes if the batch has folded
 * enough, so no batch takes longer than a few milliseconds for it.
 */
const MOST_ROWS = 32;
const MOST_BYTES = 1024 * 1024;
/** How much JSON one batch folds. What there is more of waits. */
const FOLDED_BYTES = 4 * 1024 * 1024;

/** @param events what the batch is about to add, which is not folded yet */
export async function foldStoredOutputs(transaction: WriteTransaction, events: readonly EventRow[]): Promise<void> {
  const touched = new Map<string, [sessionId: string, taskId: string]>();
  for (const { event, sessionId, entityId } of events) {
    if (event.name !== CUSTOM.taskOutput || entityId === null) continue;
    touched.set(JSON.stringify([sessionId, entityId]), [columnText(sessionId), columnText(entityId)]);
  }
  if (touched.size === 0) return;
  const looked = await runInTurns(
    transaction,
    inPieces(touched.values(), (json) => ({ sql: SELECT_MANY, args: [json] })),
  );
  const pace = new Pace();
  let room = FOLDED_BYTES;
  for (const { session_id, task_id, since, bytes } of looked.flatMap(({ rows }) => rows)) {
    if (room <= 0) return;
    room -= Number(bytes);
    await foldOne(transaction, [String(session_id), String(task_id), Number(since)]);
    await pace.rest();
  }
}

/** Which of the tasks have enough rows, and since where: what an earlier run of the same id wrote is not this one's. */
const SELECT_MANY = `SELECT wanted.session_id, wanted.task_id, since, count(*) AS pieces, sum(octet_length(e.payload)) AS bytes FROM (
    SELECT value->>0 AS session_id, value->>1 AS task_id,
      ifnull((SELECT max(position) FROM tasks WHERE session_id = value->>0 AND id = value->>1), 0) AS since
    FROM json_each(?1)
  ) AS wanted CROSS JOIN events AS e INDEXED BY events_of_output
    ON e.session_id = wanted.session_id AND e.entity_id = wanted.task_id AND e.position > wanted.since AND e.name = 'task:output'
  GROUP BY wanted.session_id, wanted.task_id HAVING pieces > 1 AND (pieces >= ${MOST_ROWS} OR bytes >= ${MOST_BYTES})`;

const OF_RUN = `FROM events INDEXED BY events_of_output
  WHERE session_id = ?1 AND entity_id = ?2 AND position > ?3 AND name = 'task:output'`;

async function foldOne(transaction: WriteTransaction, args: [string, string, number]): Promise<void> {
  const { rows } = await transaction.execute({
    sql: `SELECT position, occurred_at, payload ${OF_RUN} ORDER BY position`,
    args,
  });
  let output: TaskOutput | null = null;
  let last: AgUiEvent | null = null;
  for (const { occurred_at, payload } of rows) {
    last = JSON.parse(String(payload)) as AgUiEvent;
    output = appendOutput(output, last, Number(occurred_at));
  }
  if (output === null || last === null) return;
  const at = Number(rows.at(-1)?.position);
  const { text, from, to, redacted, ended, error, ...about } = fieldsOf(last.value);
  const value = { ...about, output };
  const payload = stringifyWellFormed({ ...withInterlude(last, { whole: true }), value });
  await transaction.execute({ sql: 'UPDATE events SET payload = ? WHERE position = ?', args: [payload, at] });
  await transaction.execute({ sql: `DELETE ${OF_RUN} AND position < ?4`, args: [...args, at] });
}
