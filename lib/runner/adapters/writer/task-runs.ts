import type { TaskEventValue } from '@interlude/protocol/ag-ui';
import { fieldsOf, numberOf } from '@interlude/protocol/fields';
import { Entities } from '@interlude/protocol/lifecycle/grammar';

/** One run of a background task. */
export interface TaskRun {
  /** Internal key: the agent may name the run later or never. */
  readonly key: string;
  readonly id: string;
  runId: string | null;
  toolUseId: string | null;
  type: string | null;
  /** Run id of the turn that started it; null between turns or if unknown. */
  readonly startedIn: string | null;
  /** Epoch milliseconds. */
  readonly startedAt: number;
}

type Ids = Pick<TaskEventValue, 'task_id' | 'run_id' | 'tool_use_id' | 'task_type'>;

/** Background tasks by (task_id, run_id). A resumed subagent keeps its id and gets a new run. */
export class TaskRuns extends Entities<'task', TaskRun> {
  #count = 0;

  /** @param most see `Entities`; hidden runs count as ended */
  constructor(most: { mostOpen: number; mostEnded: number }) {
    super('task', most);
  }

  /** Oldest first. */
  get running(): TaskRun[] {
    return this.entries().map(([, run]) => run);
  }

  begin(ids: Ids, input: 'start' | 'hide', about: Pick<TaskRun, 'startedIn' | 'startedAt'>): TaskRun {
    const { task_id: id, run_id, tool_use_id, task_type } = ids;
    const key = `${this.#count++}`;
    const run = { key, id, runId: run_id ?? null, toolUseId: tool_use_id ?? null, type: task_type ?? null, ...about };
    this.take(key, input, run);
    return run;
  }

  hasEnded({ key }: TaskRun): boolean {
    return !['hidden', 'running'].includes(this.stateOf(key));
  }

  /**
   * Finds the run with these ids, or the task's newest if no run is named, and adds the ids it lacked. A first run id
   * names the open run without one.
   */
  find({ task_id: id, run_id: runId, tool_use_id, task_type }: Ids): TaskRun | undefined {
    const named = this.newest((one) => one.id === id && (runId == null || one.runId === runId));
    const run = named ?? this.newest((one) => one.id === id && one.runId === null && !this.hasEnded(one));
    if (run === undefined) return undefined;
    run.runId ??= runId ?? null;
    run.toolUseId ??= tool_use_id ?? null;
    run.type ??= task_type ?? null;
    return run;
  }

  /** Returns the newest matching run, open or ended. */
  newest(fits: (run: TaskRun) => boolean): TaskRun | undefined {
    let newest: TaskRun | undefined;
    for (const run of this.all())
      if (fits(run) && (newest === undefined || Number(run.key) > Number(newest.key))) newest = run;
    return newest;
  }
}

/** Outcome of a task by its native status. */
export const TASK_ENDS: ReadonlyMap<unknown, 'completed' | 'failed' | 'stopped'> = new Map([
  ['completed', 'completed'],
  ['failed', 'failed'],
  ['stopped', 'stopped'],
  ['killed', 'stopped'],
]);

/** Reads a task's usage; undefined if empty. */
export function taskUsage(value: unknown): TaskEventValue['usage'] {
  const fields = fieldsOf(value);
  const names = ['total_tokens', 'tool_uses', 'duration_ms'] as const;
  const known = names.flatMap((name) => (numberOf(fields[name]) === null ? [] : [[name, numberOf(fields[name])]]));
  return known.length === 0 ? undefined : Object.fromEntries(known);
}
