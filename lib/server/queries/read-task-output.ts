import type { TaskOutputDetail } from '@interlude/protocol/read-models';
import { redactTaskOutput } from '@interlude/protocol/redaction/event-redactor';
import { markRedacted } from '@interlude/protocol/redaction/redact-model';
import { OutputDraft } from '@interlude/protocol/task-output';
import { sessionsIn } from '@/db/scope-sql';
import { columnText } from '@/db/table-rows';
import { Yielder } from '@/db/yield-to-loop';
import type { Sight } from '@/lib/server/access/sight';
import { asRead, query, readTogether } from './read-together';
import { ENTRY_COLUMNS, entryFromRow } from './turn-row';

/** Which run of a task: the one that began there, or is called so; the newest unless either is given. */
export interface RunAsked {
  runId: string | null;
  position: number | null;
}

/**
 * What a run of a task has written, as far as it is kept.
 *
 * @returns null when there is no such task
 */
export async function readTaskOutput(
  sight: Sight,
  sessionId: string,
  taskId: string,
  { runId, position: at }: RunAsked,
): Promise<TaskOutputDetail | null> {
  const run = `${RUN} AND ${sessionsIn(sight.scope, 'session_id')} ${NEWEST}`;
  const args = [columnText(sessionId), columnText(taskId), at, runId === null ? null : columnText(runId)];
  const { position, found } = await readTogether(sight, [
    query((row) => String(row.position), run, ...args),
    query(
      asRead,
      `SELECT ${ENTRY_COLUMNS} FROM events INDEXED BY events_of_output
       WHERE session_id = ?1 AND entity_id = CAST((${run}) AS TEXT) AND name = 'task:output' ORDER BY position`,
      ...args,
    ),
  ]);
  const [[taskPosition], rows] = found;
  if (taskPosition === undefined) return null;
  const draft = new OutputDraft(null);
  await new Yielder().each(rows, (row) => {
    const { event, occurredAt } = entryFromRow(row);
    draft.add(event, occurredAt);
  });
  const output = rows.length === 0 ? null : draft.result();
  if (!sight.redacts || output === null) return { position, taskPosition, output };
  const tally = { redacted: 0 };
  const pace = new Yielder();
  const told = await redactTaskOutput(output, tally, pace.restIfDue);
  return markRedacted({ position, taskPosition, output: told, redacted: tally.redacted });
}

const RUN = `SELECT position FROM tasks WHERE session_id = ?1 AND id = ?2
  AND position = ifnull(?3, position) AND (?4 IS NULL OR run_id = ?4)`;
const NEWEST = 'ORDER BY position DESC LIMIT 1';
