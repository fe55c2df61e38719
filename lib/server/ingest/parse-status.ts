import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { ProcessExit } from '@interlude/protocol/agent-status';
import { readAgentStatus } from '@interlude/protocol/agent-status';
import type { StatusRecord } from '@interlude/protocol/envelope';
import { CUSTOM, customValue, pickId } from '@interlude/protocol/event-fields';
import { compact } from '@interlude/protocol/fields';
import { withInterlude } from '@interlude/protocol/interlude-metadata';
import { GRAMMAR } from '@interlude/protocol/lifecycle/grammar';
import { comparePositions } from '@interlude/protocol/position';
import { parseReportedStatus, type ReportedStatus } from '@interlude/protocol/projections/reported-status';
import type { Task } from '@interlude/protocol/read-models';
import { taskFields } from './task-router';

const parsed = new WeakMap<StatusRecord, ReportedStatus | null>();

/** Parses the session state that a status record reports. Caches the result for a second caller. */
export function parseStatus(record: StatusRecord): ReportedStatus | null {
  const known = parsed.get(record);
  if (known !== undefined) return known;
  const status = parseReportedStatus(readAgentStatus(record.status), record.occurredAt);
  parsed.set(record, status);
  return status;
}

/** The `session:ended` that the agent would have sent, for a status record that reports the end of its process. */
export function exitEvent({ code, signal }: ProcessExit): AgUiEvent {
  const reason = signal === null ? {} : { reason: `killed by ${signal}` };
  const value = compact({ exitCode: code ?? undefined, signal: signal ?? undefined, ...reason });
  return { type: 'CUSTOM', name: CUSTOM.sessionEnded, value, metadata: { interlude: { presumed: true } } };
}

const UNLISTED = 'The runner no longer lists this task, and no result was reported.';
const UNREACHABLE = 'The agent became unreachable while this task ran, and no result was reported.';
const INTERLUDE = { interlude: { presumed: true } } as const;

/**
 * Applies the lists of a status record to the lifecycle grammar: a listed task has started, an unlisted one is presumed
 * lost; a listed request is open, an unlisted one has passed. So work whose end was lost does not stay open forever.
 * Yields an event for each end and for each corrected presumption.
 *
 * Ordering: only work that started before the record is compared. The result of a record that overtook earlier events
 * may be wrong until the real end or the next list corrects it.
 *
 * @param open tasks of the session that run or may run, and open requests of the agent itself
 * @param passed the openings of requests that were given up
 * @param isUnreachable the record lists no tasks because the agent can't be reached
 */
export function* reconcileLists(
  { taskIds, requestIds }: NonNullable<ReportedStatus['lists']>,
  open: { tasks: Iterable<Task>; requestIds: readonly string[] },
  passed: readonly { payload: AgUiEvent }[] = [],
  isUnreachable = false,
): Generator<AgUiEvent> {
  if (taskIds !== null) {
    const listed = new Set(taskIds);
    const tasks = [...open.tasks];
    const newest = newestRuns(tasks);
    for (const task of tasks) {
      // This session's runner may not know a task that a person or another session reported on.
      if (task.assignedBy !== null || task.reportedBy !== null) continue;
      const state = task.status === 'running' ? 'running' : 'presumed';
      const [, verdict] = GRAMMAR.task[state][listed.has(task.id) ? 'start' : 'presume'];
      if (verdict === 'ends') {
        const error = isUnreachable ? UNREACHABLE : UNLISTED;
        yield taskEvent(task, CUSTOM.taskCompleted, { status: 'lost', error });
      } else if (verdict === 'corrects' && newest.get(task.id) === task) {
        yield taskEvent(task, CUSTOM.taskUpdated, { status: 'running' });
      }
    }
  }
  if (requestIds === null) return;
  const listed = new Set(requestIds);
  const verdict = (state: 'open' | 'passed', id: string) => GRAMMAR.request[state][listed.has(id) ? 'ask' : 'pass'][1];
  for (const id of open.requestIds) {
    if (verdict('open', id) !== 'ends') continue;
    const value = { request_id: id, outcome: 'unknown' };
    yield { type: 'CUSTOM', name: CUSTOM.requestResolved, value, metadata: INTERLUDE };
  }
  for (const { payload } of passed) {
    if (verdict('passed', requestIdOf(payload)) === 'corrects') yield withInterlude(payload, { presumed: true });
  }
}

export function requestIdOf(event: AgUiEvent): string {
  return pickId(customValue(event), 'request_id', 'requestId') ?? '';
}

/** A listed task id stands for the newest of several runs. */
function newestRuns(tasks: readonly Task[]): ReadonlyMap<string, Task> {
  const newest = new Map<string, Task>();
  for (const task of tasks) {
    const other = newest.get(task.id);
    if (other === undefined || comparePositions(task.position, other.position) > 0) newest.set(task.id, task);
  }
  return newest;
}

function taskEvent(task: Task, name: string, more: object): AgUiEvent {
  const value = { ...taskFields(task), ...more };
  return { type: 'CUSTOM', name, value, metadata: INTERLUDE };
}
