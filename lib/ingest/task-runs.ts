import type { Task } from '@/lib/protocol/read-models';
import type { TaskMention } from './task-owners';

interface Run {
  runId: string | null;
  hasEnded: boolean;
}

interface Runs {
  /** What the task is called, where it is stored. */
  description: string | null;
  last: Run | null;
  byId: Map<string, Run>;
  /** Those nobody has named, the newest last. */
  nameless: Run[];
}

/**
 * Which runs of tasks have ended, as the task projection will find them when this batch's events are folded: so that an
 * end another session tells of is known for one that was told before, in this batch or in one before it.
 */
export class TaskRuns {
  readonly #bySession = new Map<string, Map<string, Runs>>();

  /** What was stored before this batch: every run of each task that it speaks of, in the order in which they began. */
  know({ sessionId, id, runId, status, description }: Task): void {
    const runs = this.#runs(sessionId, id);
    runs.description = description;
    add(runs, runId).hasEnded = status !== 'running' && status !== 'lost';
  }

  /** The session is told this of its task. */
  tell(sessionId: string, { id, runId, how }: TaskMention, isEnd: boolean): void {
    const runs = this.#runs(sessionId, id);
    const found = runId === null ? runs.last : (runs.byId.get(runId) ?? runs.nameless.at(-1) ?? null);
    const isAnother = how === 'starts' && found?.hasEnded === true && (runId === null || found.runId !== runId);
    const run = isAnother || found === null ? add(runs, runId) : found;
    if (run.runId === null && runId !== null) {
      run.runId = runId;
      runs.nameless.pop();
      runs.byId.set(runId, run);
    }
    if (isEnd) run.hasEnded = true;
  }

  /** Whether the run that is meant has ended for certain: `lost` is a guess, which gives way to what is told. */
  hasEnded(sessionId: string, { id, runId }: TaskMention): boolean {
    const { last, byId } = this.#runs(sessionId, id);
    return (runId === null ? last : byId.get(runId))?.hasEnded === true;
  }

  /** What people call the task, where that was known before this batch. */
  description(sessionId: string, taskId: string): string | null {
    return this.#runs(sessionId, taskId).description;
  }

  #runs(sessionId: string, taskId: string): Runs {
    const tasks = this.#bySession.get(sessionId) ?? new Map<string, Runs>();
    this.#bySession.set(sessionId, tasks);
    const runs = tasks.get(taskId) ?? { description: null, last: null, byId: new Map(), nameless: [] };
    tasks.set(taskId, runs);
    return runs;
  }
}

function add(runs: Runs, runId: string | null): Run {
  const run = { runId, hasEnded: false };
  runs.last = run;
  if (runId === null) runs.nameless.push(run);
  else runs.byId.set(runId, run);
  return run;
}
