import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM, customName, customValue, pickId, subagentTaskId, taskEventId } from '@interlude/protocol/event-fields';
import { readInterlude, withInterlude } from '@interlude/protocol/interlude-metadata';
import { type TaskRef, tasksCarried, tasksTold } from '@interlude/protocol/projections/tasks';
import { columnText } from '@/db/column-text';
import type { SpokenTask } from '@/lib/server/event-log/batch-scope';

/** What an event has to do with a task. */
export interface TaskMention extends TaskRef {
  /** `speaks`: a subagent says something; its task may never have been told of. */
  how: 'starts' | 'tells' | 'speaks';
}

/** `own`: it belongs to the session that speaks of it. `nobody`, `several`: nothing proves whose it is. */
export type TaskOwner =
  | { kind: 'own' }
  /** `byRun`: that session started the run that is named. */
  | { kind: 'other'; sessionId: string; byRun: boolean }
  | { kind: 'nobody' }
  | { kind: 'several'; sessionIds: string[] };

export const OWN: TaskOwner = { kind: 'own' };

export function taskMention(event: AgUiEvent): TaskMention | null {
  const id = taskEventId(event);
  if (id !== null) {
    const runId = pickId(customValue(event), 'run_id', 'runId');
    return { id, runId, how: customName(event) === CUSTOM.taskStarted ? 'starts' : 'tells' };
  }
  const speaker = subagentTaskId(event);
  // A subagent's request is answered where it was asked: only there a runner waits for the answer.
  if (speaker === null || event.type === 'CUSTOM') return null;
  return { id: speaker, runId: readInterlude(event).taskRunId ?? null, how: 'speaks' };
}

/**
 * Which session a task belongs to: the one that started it, whichever session reports on it. Nothing is guessed: a
 * session that has started a task means its own; else the run decides, if it is named; else the only session that knows
 * the task by its id.
 */
export class TaskOwners {
  /** By agent and task: each session that started it, with the runs it started. */
  readonly #homes = new Map<string, Map<string, Set<string | null>>>();

  started({ agentId, taskId, runId, sessionId }: SpokenTask): void {
    const sessions = this.#sessions(agentId, taskId) ?? new Map<string, Set<string | null>>();
    this.#homes.set(keyOf(agentId, taskId), sessions);
    const runs = sessions.get(sessionId);
    const run = runId === null ? null : columnText(runId);
    if (runs === undefined) sessions.set(sessionId, new Set([run]));
    else runs.add(run);
  }

  of(agentId: string, sessionId: string, { id, runId }: TaskRef): TaskOwner {
    const sessions = this.#sessions(agentId, id);
    if (sessions === undefined) return { kind: 'nobody' };
    const run = runId === null ? null : columnText(runId);
    const exact = run === null ? [] : [...sessions].flatMap(([session, runs]) => (runs.has(run) ? [session] : []));
    // The run only tells apart sessions that know the task by its id.
    const may = exact.length > 0 ? exact : [...sessions.keys()];
    if (may.includes(sessionId)) return { kind: 'own' };
    if (may.length > 1) return { kind: 'several', sessionIds: may };
    return { kind: 'other', sessionId: may[0] as string, byRun: exact.length > 0 };
  }

  #sessions(agentId: string, taskId: string): Map<string, Set<string | null>> | undefined {
    return this.#homes.get(keyOf(agentId, taskId));
  }
}

/** Some ids come as they were sent, others as the database holds them: this makes them equal. */
function keyOf(agentId: string, taskId: string): string {
  return JSON.stringify([columnText(agentId), columnText(taskId)]);
}

/** Every task that an event speaks of: the sessions that know it must be read before the event is taken. */
export function tasksSpokenOf(event: AgUiEvent): TaskRef[] {
  const mention = taskMention(event);
  return [...(mention === null ? [] : [mention]), ...tasksTold(event), ...tasksCarried(event)];
}

/** The event with `trigger.ofSessionIds` as the server knows them, whatever its sender wrote there. */
export function withOwners(event: AgUiEvent, ownerOf: (task: TaskRef) => TaskOwner) {
  const { trigger } = readInterlude(event);
  if (trigger === undefined) return event;
  const { ofSessionIds: said, ...known } = trigger;
  const ofSessionIds = known.taskIds.map((id, at) => {
    const owner = ownerOf({ id, runId: known.taskRunIds?.[at] ?? null });
    return owner.kind === 'other' ? owner.sessionId : null;
  });
  const isForeign = ofSessionIds.some((id) => id !== null);
  if (!isForeign && said === undefined) return event;
  return withInterlude(event, { trigger: { ...known, ...(isForeign ? { ofSessionIds } : {}) } });
}
