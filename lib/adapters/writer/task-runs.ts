import type { TaskEventValue } from '@/lib/protocol/ag-ui';
import { Entities } from '@/lib/protocol/lifecycle/entities';
import type { TaskInput, TaskState, Verdict } from '@/lib/protocol/lifecycle/grammar';

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

/**
 * Background tasks by (task_id, run_id): a resumed subagent keeps its id and gets another run. A value without a run is
 * about the newest one, and the first one with a run names the run that has no name and goes on.
 */
export class TaskRuns {
  readonly #runs: Entities<'task', TaskRun>;
  #count = 0;

  /** @param most open runs, and as many that have ended or are hidden */
  constructor(most: number) {
    this.#runs = new Entities('task', { mostOpen: most, mostEnded: most });
  }

  /** Oldest first. */
  get open(): TaskRun[] {
    return this.#runs.entries().map(([, run]) => run);
  }

  /** The run that has to end before another one can begin; null while there is room. */
  get crowded(): TaskRun | null {
    const key = this.#runs.crowded;
    return key === null ? null : (this.#runs.about(key) ?? null);
  }

  begin(ids: Ids, input: 'start' | 'hide', about: Pick<TaskRun, 'startedIn' | 'startedAt'>): TaskRun {
    const run: TaskRun = {
      key: `${this.#count++}`,
      id: ids.task_id,
      runId: ids.run_id ?? null,
      toolUseId: ids.tool_use_id ?? null,
      type: ids.task_type ?? null,
      ...about,
    };
    this.#runs.take(run.key, input, run);
    return run;
  }

  take({ key }: TaskRun, input: TaskInput): Verdict {
    return this.#runs.take(key, input);
  }

  verdict({ key }: TaskRun, input: TaskInput): Verdict {
    return this.#runs.verdict(key, input);
  }

  stateOf({ key }: TaskRun): TaskState {
    return this.#runs.stateOf(key);
  }

  isOpen({ key }: TaskRun): boolean {
    return this.#runs.isOpen(key);
  }

  hasEnded(run: TaskRun): boolean {
    return !['hidden', 'running'].includes(this.stateOf(run));
  }

  /** The run that is meant by these ids, with what they add to it. */
  find(ids: Ids): TaskRun | undefined {
    const { task_id: id, run_id: runId = null } = ids;
    const run =
      runId === null
        ? this.newest((one) => one.id === id)
        : (this.newest((one) => one.id === id && one.runId === runId) ??
          this.newest((one) => one.id === id && one.runId === null && !this.hasEnded(one)));
    if (run === undefined) return undefined;
    run.runId ??= runId;
    run.toolUseId ??= ids.tool_use_id ?? null;
    run.type ??= ids.task_type ?? null;
    return run;
  }

  newest(fits: (run: TaskRun) => boolean): TaskRun | undefined {
    let newest: TaskRun | undefined;
    for (const run of this.#runs.values())
      if (fits(run) && (newest === undefined || Number(run.key) > Number(newest.key))) newest = run;
    return newest;
  }
}
