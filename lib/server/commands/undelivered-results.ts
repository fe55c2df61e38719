import { UNDELIVERED_MS } from '@interlude/protocol/limits';
import { type DueRows, EVERY_ROW, type RowChoice, selectDue } from '@/db/row-sweep';
import { tasks } from '@/db/schema';
import { shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { numberSetting } from '@/lib/server/access/access-settings';
import { appendFacts } from '@/lib/server/ingest/append-facts';

/**
 * Results of tasks that ended while their agent was idle and that no turn has taken up in time. `unanswered_since` is in the
 * row, so any instance finds the same, also after a restart and with another setting.
 */

const UNANSWERED = shapeOf(tasks, 'sessionId', 'agentId', 'id', 'runId', 'position', 'body');

const SECOND_MS = 1_000;
/** A year: no result waits longer, and every time stays a safe number. */
const MOST_SECONDS = 31_536_000;

/** Milliseconds that a result may wait for a turn, from `INTERLUDE_UNDELIVERED_SECONDS`. */
export function undeliveredMs(env: Record<string, string | undefined>): number {
  const byDefault = UNDELIVERED_MS / SECOND_MS;
  const seconds = numberSetting(env, 'INTERLUDE_UNDELIVERED_SECONDS', {
    byDefault,
    most: MOST_SECONDS,
    otherwise: `results count as not delivered after ${byDefault} seconds`,
  });
  return seconds * SECOND_MS;
}

/**
 * An open or expected turn may still take the result up, so the row is due once the session rests. Contact lost in the
 * middle of a turn has an inbox item of its own.
 */
const IS_AT_REST = `(SELECT iif(state = 'unknown', body->>'$.evidence.last', state) NOT IN ('working', 'needs-input', 'starting')
  FROM sessions WHERE id = tasks.session_id)`;

/** @param waitsMs milliseconds that a result may wait */
export function undeliveredResults(now: number, waitsMs: number): DueRows {
  return {
    table: 'tasks',
    key: 'rowid',
    where: `unanswered_since <= ?1 AND ${IS_AT_REST}`,
    args: [now - waitsMs],
    order: 'unanswered_since',
  };
}

/** @returns the number of tasks marked; call again until it is 0 */
export async function tellUndelivered(
  transaction: WriteTransaction,
  { now, waitsMs }: { now: number; waitsMs: number },
  choice: RowChoice = EVERY_ROW,
): Promise<number> {
  const due = selectDue(undeliveredResults(now, waitsMs), choice, `rowid AS number, ${UNANSWERED.columns()}`);
  const { rows } = await transaction.execute(due);
  const facts = rows.map((row) => {
    const { agentId, sessionId, runId, position, body } = UNANSWERED.read(row);
    return { kind: 'task-undelivered' as const, agentId, sessionId, id: body.id, runId, position: String(position) };
  });
  await appendFacts(transaction, now, facts);
  await transaction.execute({
    sql: 'UPDATE tasks SET unanswered_since = NULL WHERE rowid IN (SELECT value FROM json_each(?))',
    args: [JSON.stringify(rows.map(({ number }) => Number(number)))],
  });
  return rows.length;
}
