import { customName } from '@/lib/projections/event-fields';
import type { StatusTold } from '@/lib/projections/status-told';
import { type AgUiEvent, CUSTOM } from '@/lib/protocol/ag-ui';
import type { ProcessExit } from '@/lib/protocol/agent-state';
import { compact } from '@/lib/protocol/fields';
import type { Task } from '@/lib/protocol/read-models';

const UNLISTED = 'Its runner does not list it any more, and nothing told how it ended.';
const INTERLUDE = { interlude: { presumed: true } } as const;

/**
 * What a status record says by listing the open work of its session. Work whose end was lost would be open for ever: a
 * task that is not listed any more is lost, and nobody waits for a request that is not. A task that was only presumed to
 * be lost runs again if it is listed.
 *
 * Ordering: only what began before the record is looked at. A record that is told ahead of what happened before it may be
 * wrong for a while: the real end, or the next list, puts that right.
 *
 * @param tasks those of the session that run or may run
 * @param requestIds what its agent itself has asked and waits for
 * @returns the events to write behind the record
 */
export function* eventsOfLists(
  { taskIds, requestIds }: NonNullable<StatusTold['lists']>,
  tasks: Iterable<Task>,
  open: readonly string[],
): Generator<AgUiEvent> {
  if (taskIds !== null) {
    const listed = new Set(taskIds);
    for (const task of [...tasks]) {
      // a person, or another session, has said something of it: this session's runner need not know it
      if (task.assignedBy !== null || task.reportedBy !== null) continue;
      const isRunning = task.status === 'running';
      if (isRunning === listed.has(task.id)) continue;
      yield isRunning
        ? about(task, CUSTOM.taskCompleted, { status: 'lost', error: UNLISTED })
        : about(task, CUSTOM.taskUpdated, { status: 'running' });
    }
  }
  if (requestIds === null) return;
  const listed = new Set(requestIds);
  for (const id of open) {
    if (listed.has(id)) continue;
    const value = { request_id: id, outcome: 'unknown' };
    yield { type: 'CUSTOM', name: CUSTOM.requestResolved, value, metadata: INTERLUDE };
  }
}

/** What a status record says by telling that the process has ended: the same as its agent does by `session:ended`. */
export function endOf({ code, signal }: ProcessExit): AgUiEvent {
  const reason = signal === null ? {} : { reason: `killed by ${signal}` };
  const value = { exitCode: code ?? undefined, signal: signal ?? undefined, ...reason };
  return { type: 'CUSTOM', name: CUSTOM.sessionEnded, value: compact(value), metadata: INTERLUDE };
}

/** Whether the process is there, again or for the first time. */
export function startsProcess(event: AgUiEvent): boolean {
  return event.type === 'RUN_STARTED' || customName(event) === CUSTOM.sessionStarted;
}

function about({ id, runId }: Task, name: string, more: object): AgUiEvent {
  const value = { task_id: id, ...(runId === null ? {} : { run_id: runId }), ...more };
  return { type: 'CUSTOM', name, value, metadata: INTERLUDE };
}
