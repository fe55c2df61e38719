import { comparePositions, type Position } from '@interlude/protocol/position';
import type { Task } from '@interlude/protocol/read-models';

/** Names a task by its first event's position, by its run, or by its id, which agents may reuse. */
export interface TaskRef {
  id: string;
  runId: string | null;
  /** Position of the item that names the task. */
  position: Position | null;
}

/** The runs of one task id. */
interface Runs {
  /** In order of their start. */
  ascending: Task[];
  byPosition: Map<Position, Task>;
  byRunId: Map<string, Task>;
}

/** Finds tasks in logarithmic time: a session may have thousands, and every row of the transcript looks some up. */
export class TaskIndex {
  readonly #runs = new Map<string, Runs>();

  constructor(tasks: readonly Task[]) {
    for (const task of tasks) {
      let runs = this.#runs.get(task.id);
      if (runs === undefined) {
        runs = { ascending: [], byPosition: new Map(), byRunId: new Map() };
        this.#runs.set(task.id, runs);
      }
      runs.ascending.push(task);
      runs.byPosition.set(task.position, task);
      if (task.runId !== null && !runs.byRunId.has(task.runId)) runs.byRunId.set(task.runId, task);
    }
    for (const { ascending } of this.#runs.values()) {
      ascending.sort((a, b) => comparePositions(a.position, b.position));
    }
  }

  /**
   * The task that an item belongs to: the one that started there, else the named run, else the newest one that had
   * started by then.
   */
  find({ id, runId, position }: TaskRef): Task | null {
    const runs = this.#runs.get(id);
    if (runs === undefined) return null;
    const { ascending, byPosition, byRunId } = runs;
    if (ascending.length === 1 || position === null)
      return (runId === null ? null : byRunId.get(runId)) ?? ascending.at(-1) ?? null;
    return byPosition.get(position) ?? (runId === null ? null : byRunId.get(runId)) ?? lastStarted(ascending, position);
  }
}

/** The last task that had started at `position`. */
function lastStarted(ascending: readonly Task[], position: Position): Task | null {
  let from = 0;
  let to = ascending.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (comparePositions((ascending[middle] as Task).position, position) <= 0) from = middle + 1;
    else to = middle;
  }
  return ascending[from - 1] ?? null;
}
