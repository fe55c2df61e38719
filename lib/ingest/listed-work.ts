import type { OpeningRow } from '@/lib/event-log/read-batch-state';
import type { StatusTold } from '@/lib/projections/status-told';
import { type AgUiEvent, CUSTOM } from '@/lib/protocol/ag-ui';
import type { ProcessExit } from '@/lib/protocol/agent-state';
import { customName, customValue, pickId } from '@/lib/protocol/event-fields';
import { compact } from '@/lib/protocol/fields';
import { interludeOf } from '@/lib/protocol/interlude-metadata';
import { MAX_PENDING_REQUESTS } from '@/lib/protocol/limits';
import { comparePositions } from '@/lib/protocol/position';
import type { Task } from '@/lib/protocol/read-models';
import { withInterlude } from '@/lib/protocol/with-interlude';
import type { SessionBatch } from './session-batch';
import { aboutTask } from './task-router';

const UNLISTED = 'Its runner does not list it any more, and nothing told how it ended.';
const UNREACHABLE = 'The agent became unreachable while this ran, and nothing told how it ended.';
const INTERLUDE = { interlude: { presumed: true } } as const;

/**
 * What a status record says by listing the open work of its session. Work whose end was lost would be open for ever: a
 * task that is not listed any more is lost, and nobody waits for a request that is not. A task that was only presumed to
 * be lost runs again if it is listed, and a request that was given up is open again.
 *
 * Ordering: only what began before the record is looked at. A record that is told ahead of what happened before it may be
 * wrong for a while: the real end, or the next list, puts that right.
 *
 * @param open tasks of the session that run or may run, and what its agent itself has asked and waits for
 * @param givenUp what was asked by requests that were given up since
 * @param isUnreachable the record lists no tasks because its agent can't be reached
 * @returns the events to write behind the record
 */
export function* eventsOfLists(
  { taskIds, requestIds }: NonNullable<StatusTold['lists']>,
  open: { tasks: Iterable<Task>; requestIds: readonly string[] },
  givenUp: readonly OpeningRow[] = [],
  isUnreachable = false,
): Generator<AgUiEvent> {
  if (taskIds !== null) {
    const listed = new Set(taskIds);
    const tasks = [...open.tasks];
    // A list names ids: of several runs of one, it means the one that began last.
    const newest = new Map<string, Task>();
    for (const task of tasks) {
      const other = newest.get(task.id);
      if (other === undefined || comparePositions(task.position, other.position) > 0) newest.set(task.id, task);
    }
    for (const task of tasks) {
      // a person, or another session, has said something of it: this session's runner need not know it
      if (task.assignedBy !== null || task.reportedBy !== null) continue;
      const isRunning = task.status === 'running';
      if (isRunning === listed.has(task.id) || (!isRunning && newest.get(task.id) !== task)) continue;
      yield isRunning
        ? about(task, CUSTOM.taskCompleted, { status: 'lost', error: isUnreachable ? UNREACHABLE : UNLISTED })
        : about(task, CUSTOM.taskUpdated, { status: 'running' });
    }
  }
  if (requestIds === null) return;
  const listed = new Set(requestIds);
  for (const id of open.requestIds) {
    if (listed.has(id)) continue;
    const value = { request_id: id, outcome: 'unknown' };
    yield { type: 'CUSTOM', name: CUSTOM.requestResolved, value, metadata: INTERLUDE };
  }
  for (const { payload } of givenUp) {
    if (listed.has(requestIdOf(payload) ?? '')) yield withInterlude(payload, { presumed: true });
  }
}

/** The requests of a session that are given up behind an event, by the server or as not listed, until their agent or its runner speaks of them. */
export function stillGivenUp(
  { givenUp, before }: Pick<SessionBatch, 'givenUp' | 'before'>,
  event: AgUiEvent,
  isServer: boolean,
): ReadonlySet<string> {
  const name = customName(event);
  if (name === CUSTOM.sessionEnded) return new Set();
  const id = name === CUSTOM.requestOpened || name === CUSTOM.requestResolved ? requestIdOf(event) : null;
  if (id === null) return givenUp;
  const others = [...givenUp].filter((other) => other !== id);
  // A list may have been told out of its order: what it ended is open again with the next that has it.
  const isGuessed = interludeOf(event).presumed === true || (isServer && before?.isAway === true);
  const isGiven = isGuessed && name === CUSTOM.requestResolved && customValue(event).outcome === 'unknown';
  return new Set(isGiven ? [...others, id].slice(-MAX_PENDING_REQUESTS) : others);
}

/** Which of them can be opened again: those that the agent told itself. */
export function isGivenUp({ givenUp }: Pick<SessionBatch, 'givenUp'>) {
  return ({ payload }: OpeningRow) =>
    interludeOf(payload).derived === undefined && givenUp.has(requestIdOf(payload) ?? '');
}

function requestIdOf(event: AgUiEvent): string | null {
  return pickId(customValue(event), 'request_id', 'requestId');
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

function about(task: Task, name: string, more: object): AgUiEvent {
  const value = { ...aboutTask(task), ...more };
  return { type: 'CUSTOM', name, value, metadata: INTERLUDE };
}
