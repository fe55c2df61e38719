import { hasEnded, overrules, type Standing } from '@/lib/projections/task-status';
import type { Task } from '@/lib/protocol/read-models';
import type { TaskMention } from './task-owners';

interface Run extends Standing {
  runId: string | null;
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
  know({ sessionId, id, runId, status, reportedBy, description }: Task): void {
    const runs = this.#runs(sessionId, id);
    runs.description = description;
    Object.assign(add(runs, runId), { status, reportedBy });
  }

  /** The session is told this of its task: how it stands now, by whose word. */
  tell(sessionId: string, { id, runId, how }: TaskMention, { status, reportedBy }: Standing): void {
    const runs = this.#runs(sessionId, id);
    const found = runId === null ? runs.last : (runs.byId.get(runId) ?? runs.nameless.at(-1) ?? null);
    const isAnother =
      how === 'starts' && found !== null && found.status !== 'running' && (runId === null || found.runId !== runId);
    const run = isAnother || found === null ? add(runs, runId) : found;
    if (run.runId === null && runId !== null) {
      run.runId = runId;
      runs.nameless.pop();
      runs.byId.set(runId, run);
    }
    if (overrules({ status, reportedBy }, run)) Object.assign(run, { status, reportedBy });
  }

  /** How the run that is meant has ended for certain, else null: `lost` is a guess, which gives way to what is told. */
  endOf(sessionId: string, { id, runId }: TaskMention): Standing | null {
    const { last, byId } = this.#runs(sessionId, id);
    const run = runId === null ? last : byId.get(runId);
    return run && hasEnded(run.status) ? run : null;
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
  const run: Run = { runId, status: 'running', reportedBy: null };
  runs.last = run;
  if (runId === null) runs.nameless.push(run);
  else runs.byId.set(runId, run);
  return run;
}
