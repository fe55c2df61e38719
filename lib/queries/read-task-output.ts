import type { Database } from '@/db/client';
import { columnText } from '@/db/column-text';
import { Pace } from '@/db/next-turn';
import { foldTaskOutput } from '@/lib/projections/task-output';
import type { TaskOutputDetail } from '@/lib/protocol/read-models';
import { isOfRun, runIndex, runsOf } from './read-tasks';
import { asRead, query, readTogether } from './read-together';
import { ENTRY_COLUMNS, entryFromRow } from './turn-row';

/**
 * What a run of a task has written, as far as it is kept; of the newest run unless `runId` names another.
 *
 * @returns null when there is no such task
 */
export async function readTaskOutput(
  { reader }: Database,
  sessionId: string,
  taskId: string,
  runId: string | null,
): Promise<TaskOutputDetail | null> {
  const session = columnText(sessionId);
  const { position, found } = await readTogether(reader, [
    runsOf(session, taskId),
    query(
      asRead,
      `SELECT ${ENTRY_COLUMNS} FROM events INDEXED BY events_of_output
       WHERE session_id = ? AND entity_id = ? AND name = 'task:output' ORDER BY position`,
      session,
      columnText(taskId),
    ),
  ]);
  const [runs, rows] = found;
  const at = runIndex(runs, runId);
  const run = runs[at];
  if (run === undefined) return null;
  const about = { taskId: run.id, runId: run.runId, hasEnded: run.endedAt !== null, isOver: false, output: null };
  const pace = new Pace();
  let detail: TaskOutputDetail = { position, ...about };
  await pace.each(rows, (row) => {
    const entry = entryFromRow(row);
    if (isOfRun(runs, at, entry.position)) detail = foldTaskOutput(detail, [entry]);
  });
  return { ...detail, isOver: at < runs.length - 1 };
}
