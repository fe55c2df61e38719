import type { Fields } from '@/lib/protocol/fields';
import type { OpenTurn, TurnAbout, TurnCause, TurnEnd } from '../writer/session-writer';
import { originRun, otherTrigger, userMessageIds } from './attribution';
import { type TaskEnd, TaskEnds, taskTrigger } from './task-ends';
import { resultSummary } from './turn-outcome';

/**
 * The cause and the answers of Claude's turns: which user messages and which ends of tasks each one answers. The CLI says
 * so at the end of a turn at the latest; at its beginning much is a guess.
 */
export class TurnAttribution {
  readonly ends: TaskEnds;
  readonly #endOfRun: (taskRunId: string) => TaskEnd | null;
  /** User messages that no turn has answered, oldest first. */
  readonly #unanswered = new Set<string>();
  /** Older CLIs name no user messages; once one init has, an init that names none does not open a user turn. */
  #initsNameMessages = false;
  /** Ends that the newest turn seemed to answer when it opened. */
  #guess: readonly TaskEnd[] = [];

  /**
   * @param saysWhatIsTold the source says which turn is told of which end
   * @param endOfRun a task's end by the run of the task, even if a turn has already been told of it
   */
  constructor(saysWhatIsTold: boolean | undefined, endOfRun: (taskRunId: string) => TaskEnd | null) {
    this.ends = new TaskEnds(saysWhatIsTold);
    this.#endOfRun = endOfRun;
  }

  sent(messageId: string): void {
    this.#unanswered.add(messageId);
  }

  /** @returns the user messages that a message of the agent says its turn answers */
  named(message: Fields): string[] {
    const ids = userMessageIds(message);
    for (const id of ids) this.#unanswered.delete(id);
    return ids;
  }

  /** @returns the user messages that an init says its turn answers */
  initNames(init: Fields): string[] {
    const ids = userMessageIds(init);
    if (ids.length > 0) this.#initsNameMessages = true;
    return ids;
  }

  /** The cause of a turn that begins with a message. */
  causeOf(message: Fields): TurnCause {
    const named = this.named(message);
    const guess = this.ends.waking();
    const waiting = this.#initsNameMessages || guess.length > 0 ? [] : [...this.#unanswered];
    const answers = named.length > 0 ? named : waiting;
    const kind = answers.length > 0 ? 'user' : 'between-run';
    this.ends.opened(kind);
    this.#guess = guess;
    for (const id of answers) this.#unanswered.delete(id);
    if (kind === 'user') return { kind, userMessageIds: answers };
    const parentRunId = guess.find((end) => end.startedInRun !== null)?.startedInRun ?? null;
    return { kind, trigger: guess.length > 0 ? taskTrigger(guess) : otherTrigger(message), parentRunId };
  }

  /** The cause and the answers of a turn that ends, as finally known. @param result null: the agent gave none */
  settle(kind: OpenTurn['kind'], end: TurnEnd, result: Fields | null): TurnAbout {
    const runId = originRun(result ?? {});
    const unanswered = end.kind === 'failed' && end.code === 'api_error';
    const { causes, folded } = this.ends.settle({ kind, runId, guess: this.#guess, unanswered });
    if (kind === 'between-run' && runId !== null && !causes.some((one) => one.runId === runId)) {
      // A notification that an earlier turn seemed to have been told of got a turn of its own after all.
      const late = this.#endOfRun(runId);
      if (late !== null) causes.push(late);
    }
    return {
      result: result === null ? undefined : resultSummary(result),
      trigger: causes.length > 0 ? taskTrigger(causes) : otherTrigger(result ?? {}),
      foldedTaskIds: folded.map(({ taskId }) => taskId),
    };
  }
}
