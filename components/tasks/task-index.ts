import { comparePositions, type Position } from '@interlude/protocol/position';
import type { Task } from '@interlude/protocol/read-models';

/** A way to name a task: by the place of its first event, by its run, or only by its id, which agents may use again. */
export interface TaskRef {
  id: string;
  runId: string | null;
  /** Where the moment stands that names it. */
  position: Position | null;
}

/** The runs of one id. */
interface Runs {
  /** The one that began last at the end. */
  ascending: Task[];
  byPosition: Map<Position, Task>;
  byRunId: Map<string, Task>;
}

/** A session may have thousands of tasks, or of runs of one, and every row of the transcript asks for some. */
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
   * The task a moment in the transcript belongs to: the one that began there, else the run it names, else the newest
   * of that id that had begun by then.
   */
  find({ id, runId, position }: TaskRef): Task | null {
    const runs = this.#runs.get(id);
    if (runs === undefined) return null;
    const { ascending, byPosition, byRunId } = runs;
    if (ascending.length === 1 || position === null)
      return (runId === null ? null : byRunId.get(runId)) ?? ascending.at(-1) ?? null;
    return byPosition.get(position) ?? (runId === null ? null : byRunId.get(runId)) ?? lastBegun(ascending, position);
  }
}

/** The last that had begun at `position`, in so many steps as the number of runs has binary digits. */
function lastBegun(ascending: readonly Task[], position: Position): Task | null {
  let from = 0;
  let to = ascending.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (comparePositions((ascending[middle] as Task).position, position) <= 0) from = middle + 1;
    else to = middle;
  }
  return ascending[from - 1] ?? null;
}
