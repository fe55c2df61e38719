import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { fieldsOf } from '@interlude/protocol/fields';
import { withInterlude } from '@interlude/protocol/interlude-metadata';
import { stringifyWellFormed } from '@interlude/protocol/json';
import { OutputDraft } from '@interlude/protocol/task-output';
import { columnText } from '@/db/column-text';
import { inPieces, runInTurns } from '@/db/json-pieces';
import { Pace } from '@/db/next-turn';
import type { WriteTransaction } from '@/db/writes';
import type { EventRow } from './batch-rows';

/**
 * What a task writes comes in many pieces, of which only the newest are kept: once there are enough of them, those that
 * are stored become one row.
 *
 * Ordering: the one row stands where the last of them stood, and says `whole`. A reader that resumes before it finds it
 * ahead and puts it in place of what it had; one that is past it has all of it.
 * Failure: part of the batch's transaction. A task is left for the next time that it writes if the batch has folded
 * enough, and others get their turns in between, however many pieces there are.
 */
const MOST_ROWS = 32;
const MOST_BYTES = 1024 * 1024;
/** How much JSON, and how many rows, one batch folds. What there is more of waits. */
const FOLDED_BYTES = 4 * 1024 * 1024;
const FOLDED_ROWS = 20_000;

/** @param events what the batch is about to add, which is not folded yet */
export async function foldStoredOutputs(transaction: WriteTransaction, events: readonly EventRow[]): Promise<void> {
  const touched = new Map<string, [sessionId: string, task: string]>();
  for (const { event, sessionId, entityId } of events) {
    if (event.name !== CUSTOM.taskOutput || entityId === null) continue;
    touched.set(JSON.stringify([sessionId, entityId]), [columnText(sessionId), entityId]);
  }
  if (touched.size === 0) return;
  const looked = await runInTurns(
    transaction,
    inPieces(touched.values(), (json) => ({ sql: SELECT_MANY, args: [json] })),
  );
  const pace = new Pace();
  const room = { bytes: FOLDED_BYTES, rows: FOLDED_ROWS };
  for (const { session_id, task, pieces, bytes } of looked.flatMap(({ rows }) => rows)) {
    if (room.bytes <= 0 || room.rows <= 0) return;
    room.bytes -= Number(bytes);
    room.rows -= Number(pieces);
    await foldOne(transaction, String(session_id), String(task), pace);
  }
}

const OF_TASK = `INDEXED BY events_of_output WHERE session_id = ?1 AND entity_id = ?2 AND name = 'task:output'`;

/** Which of the tasks have enough rows. */
const SELECT_MANY = `SELECT e.session_id AS session_id, e.entity_id AS task, count(*) AS pieces,
    sum(octet_length(e.payload)) AS bytes
  FROM json_each(?1) AS wanted CROSS JOIN events AS e INDEXED BY events_of_output
    ON e.session_id = wanted.value->>0 AND e.entity_id = wanted.value->>1 AND e.name = 'task:output'
  GROUP BY e.session_id, e.entity_id HAVING pieces > 1 AND (pieces >= ${MOST_ROWS} OR bytes >= ${MOST_BYTES})`;

async function foldOne(transaction: WriteTransaction, sessionId: string, task: string, pace: Pace): Promise<void> {
  const draft = new OutputDraft(null);
  let last: { at: number; event: AgUiEvent } | null = null;
  // A page at a time: the pieces of one task may be as many as its agent likes.
  for (let after = 0; ; after = (last as { at: number }).at) {
    const { rows } = await transaction.execute({
      sql: `SELECT position, occurred_at, payload FROM events ${OF_TASK} AND position > ?3 ORDER BY position LIMIT ${PAGE}`,
      args: [sessionId, task, after],
    });
    for (const { position, occurred_at, payload } of rows) {
      const event: AgUiEvent = JSON.parse(String(payload));
      draft.add(event, Number(occurred_at));
      last = { at: Number(position), event };
      if (pace.isDue) await pace.rest();
    }
    if (rows.length < PAGE) break;
  }
  if (last === null) return;
  const { text, from, to, redacted, ended, error, written_at, ...about } = fieldsOf(last.event.value);
  const value = { ...about, output: draft.result() };
  const payload = stringifyWellFormed({ ...withInterlude(last.event, { whole: true }), value });
  await transaction.execute({ sql: 'UPDATE events SET payload = ? WHERE position = ?', args: [payload, last.at] });
  await transaction.execute({
    sql: `DELETE FROM events ${OF_TASK} AND position < ?3`,
    args: [sessionId, task, last.at],
  });
}

const PAGE = 500;
