import { customValue, pickId, taskEventId } from '@interlude/protocol/event-fields';
import type { EventEntry } from '@interlude/protocol/projections/placement';
import { TaskLedger } from '@interlude/protocol/projections/tasks';
import type { Task } from '@interlude/protocol/read-models';

/** `activityType` of a background task. */
export const TASK_ACTIVITY = 'interlude-task';

interface TaskActivity {
  messageId: string;
  content: Record<string, unknown>;
}

/** A session's tasks as activities: messages that clients render by `activityType`. */
export class TaskActivities {
  readonly #ledger: TaskLedger;

  /** @param running the tasks that already run; repeated events about them change nothing */
  constructor(owner: { sessionId: string; agentId: string }, running: readonly Task[]) {
    this.#ledger = new TaskLedger(owner);
    for (const task of running) this.#ledger.load(task);
  }

  isAnyRunning(): boolean {
    return this.running().length > 0;
  }

  running(): TaskActivity[] {
    return [...this.#ledger.open()].filter(({ status }) => status === 'running').map(activityOf);
  }

  /** Applies any event, because some events end all tasks. @returns the event's task */
  apply(entry: EventEntry): TaskActivity | null {
    for (const _ of this.#ledger.apply({ entry, turnId: null, turns: [] }));
    const { event } = entry;
    const id = taskEventId(event);
    const task = id === null ? undefined : this.#ledger.find(id, pickId(customValue(event), 'run_id', 'runId'));
    return task === undefined ? null : activityOf(task);
  }
}

function activityOf(task: Task): TaskActivity {
  const { id, runId, description, kind, status, exitCode, summary, error, toolCallId, startedAt, endedAt } = task;
  // The prefix keeps the id distinct from ids of calls and messages.
  const messageId = runId === null ? `task:${id}` : `task:${id}:${runId}`;
  const state = { description, kind, status, exitCode, summary, error, toolCallId, startedAt, endedAt };
  return { messageId, content: { taskId: id, runId, ...state } };
}
