import { type AgUiEvent, CUSTOM } from '@interlude/protocol/ag-ui';
import type { ProcessExit } from '@interlude/protocol/agent-state';
import { readAgentStatus } from '@interlude/protocol/agent-status';
import type { StatusRecord } from '@interlude/protocol/envelope';
import { customValue, pickId } from '@interlude/protocol/event-fields';
import { compact } from '@interlude/protocol/fields';
import { GRAMMAR } from '@interlude/protocol/lifecycle/grammar';
import { comparePositions } from '@interlude/protocol/position';
import { type StatusTold, statusTold } from '@interlude/protocol/projections/status-told';
import type { Task } from '@interlude/protocol/read-models';
import { withInterlude } from '@interlude/protocol/with-interlude';
import { taskFields } from './task-router';

const READ = new WeakMap<StatusRecord, StatusTold | null>();

/** The session's state according to a status record. Parses each record once, though two callers ask. */
export function parseStatus(record: StatusRecord): StatusTold | null {
  const known = READ.get(record);
  if (known !== undefined) return known;
  const told = statusTold(readAgentStatus(record.status), record.occurredAt);
  READ.set(record, told);
  return told;
}

/** The end of a session whose status record says that its process has ended: the same as its agent's `session:ended`. */
export function exitEvent({ code, signal }: ProcessExit): AgUiEvent {
  const reason = signal === null ? {} : { reason: `killed by ${signal}` };
  const value = compact({ exitCode: code ?? undefined, signal: signal ?? undefined, ...reason });
  return { type: 'CUSTOM', name: CUSTOM.sessionEnded, value, metadata: { interlude: { presumed: true } } };
}

const UNLISTED = 'Its runner does not list it any more, and nothing told how it ended.';
const UNREACHABLE = 'The agent became unreachable while this ran, and nothing told how it ended.';
const INTERLUDE = { interlude: { presumed: true } } as const;

/**
 * The lists of a status record as inputs of the grammar: a listed task starts and one that is not listed is presumed lost,
 * a listed request asks and one that is not listed is passed. So work whose end was lost does not stay open for ever. An
 * event follows where the input ends something, or corrects what was only presumed.
 *
 * Ordering: only what began before the record is looked at. A record that is sent ahead of what happened before it may be
 * wrong for a while: the real end, or the next list, puts that right.
 *
 * @param open tasks of the session that run or may run, and open requests of its agent itself
 * @param passed the openings of requests that were given up since
 * @param isUnreachable the record lists no tasks because its agent can't be reached
 * @returns the events to write behind the record
 */
export function* reconcileLists(
  { taskIds, requestIds }: NonNullable<StatusTold['lists']>,
  open: { tasks: Iterable<Task>; requestIds: readonly string[] },
  passed: readonly { payload: AgUiEvent }[] = [],
  isUnreachable = false,
): Generator<AgUiEvent> {
  if (taskIds !== null) {
    const listed = new Set(taskIds);
    const tasks = [...open.tasks];
    const newest = newestRuns(tasks);
    for (const task of tasks) {
      // A task that a person or another session has reported on need not be known to this session's runner.
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

/** A list names ids: of several runs of one task, it means the one that began last. */
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
