import { comparePositions, type Position } from '@/lib/protocol/position';
import type { Task } from '@/lib/protocol/read-models';

/** A way to name a task: by the place of its first event, by its run, or only by its id, which agents may use again. */
export interface TaskRef {
  id: string;
  runId: string | null;
  /** Where the moment stands that names it. */
  position: Position | null;
}

/** A session may have thousands of tasks, and every row of the transcript asks for some. */
export class TaskIndex {
  readonly #runs = new Map<string, Task[]>();

  constructor(tasks: readonly Task[]) {
    for (const task of tasks) {
      const runs = this.#runs.get(task.id);
      if (runs) runs.push(task);
      else this.#runs.set(task.id, [task]);
    }
  }

  /**
   * The task a moment in the transcript belongs to: the one that began there, else the run it names, else the newest
   * of that id that had begun by then.
   */
  find({ id, runId, position }: TaskRef): Task | null {
    const runs = this.#runs.get(id) ?? [];
    if (runs.length <= 1) return runs[0] ?? null;
    const begun = runs
      .filter((task) => position === null || comparePositions(task.position, position) <= 0)
      .sort((a, b) => comparePositions(b.position, a.position));
    return (
      runs.find((task) => task.position === position) ??
      (runId === null ? undefined : runs.find((task) => task.runId === runId)) ??
      begun[0] ??
      null
    );
  }
}
