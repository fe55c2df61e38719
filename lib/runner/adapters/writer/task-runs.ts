import type { TaskEventValue } from '@interlude/protocol/ag-ui';
import { Entities } from '@interlude/protocol/lifecycle/grammar';

/** One run of a background task, as far as it is known. */
export interface TaskRun {
  /** Names the run here: the agent may name it later, or never. */
  readonly key: string;
  readonly id: string;
  runId: string | null;
  toolUseId: string | null;
  type: string | null;
  /** The turn that started it; null: between turns, or before the agent's messages are known. */
  readonly startedIn: string | null;
  /** Epoch milliseconds. */
  readonly startedAt: number;
}

type Ids = Pick<TaskEventValue, 'task_id' | 'run_id' | 'tool_use_id' | 'task_type'>;

/** Background tasks by (task_id, run_id): a resumed subagent keeps its id and gets another run. */
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
   * The run that these ids mean, with what they add to it: the newest, if they name none. The first ones with a run name
   * the run that has no name and goes on.
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

  /** The newest run that fits, open or ended. */
  newest(fits: (run: TaskRun) => boolean): TaskRun | undefined {
    let newest: TaskRun | undefined;
    for (const run of this.all())
      if (fits(run) && (newest === undefined || Number(run.key) > Number(newest.key))) newest = run;
    return newest;
  }
}
