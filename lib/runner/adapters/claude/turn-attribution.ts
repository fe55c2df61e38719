import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import type { TurnInput, Verdict } from '@interlude/protocol/lifecycle/grammar';
import type { SessionWriter, TurnAbout, TurnCause, TurnEnd } from '../writer/session-writer';
import { originRun, otherTrigger, userMessageIds } from './attribution';
import { type TaskEnd, TaskEnds, taskTrigger } from './task-ends';
import { outcomeOf, resultSummary } from './turn-outcome';

/**
 * Reads Claude's messages about turns, and which user messages and ends of tasks each turn answers. A turn goes from
 * `init` to `result` (Agent SDK 0.3.332), and only the result says for certain what it answered.
 */
export class TurnAttribution {
  readonly ends: TaskEnds;
  readonly #writer: SessionWriter;
  readonly #endOfRun: (taskRunId: string) => TaskEnd | null;
  /** User messages that no turn has answered, oldest first. */
  readonly #unanswered = new Set<string>();
  /** Older CLIs name no user messages; once one init has, an init that names none does not open a user turn. */
  #initsNameMessages = false;
  /** Ends that the newest turn seemed to answer when it began. */
  #guess: readonly TaskEnd[] = [];
  /** The newest turn has said or done something: what comes late from the one before does not count. */
  #hasActed = false;
  /** The newest turn has said a text, which its result only repeats. */
  #hasText = false;

  /**
   * @param endOfRun a task's end by the run of the task, even if a turn has already answered it
   * @param saysWhatIsTold the source says which turn answers which end
   */
  constructor(writer: SessionWriter, endOfRun: (taskRunId: string) => TaskEnd | null, saysWhatIsTold?: boolean) {
    this.ends = new TaskEnds(saysWhatIsTold);
    this.#writer = writer;
    this.#endOfRun = endOfRun;
  }

  sent(messageId: string): void {
    this.#unanswered.add(messageId);
  }

  init(message: Fields): void {
    const ids = userMessageIds(message);
    if (ids.length > 0) this.#initsNameMessages = true;
    const { turn } = this.#writer;
    const isRepeated = turn !== null && ids.length > 0 && ids.every((id) => turn.answers.has(id));
    if (isRepeated) return;
    // A prompt that is drained together with a notification, or another prompt, is answered with it.
    if (ids.length > 0 && message.joins === true && turn !== null && !this.#hasActed) {
      this.ends.joined();
      this.#writer.join(this.#answered(ids));
    } else this.#sign(ids.length > 0 ? 'begin' : 'announce', message);
  }

  /** The main thread asks the model (`request`), or says or does something (`content`). */
  active(input: 'request' | 'content', message: Fields): void {
    this.#sign(input, message);
    if (input === 'content') this.#hasActed = true;
    this.#answers(message);
  }

  saidText(): void {
    this.#hasText = true;
  }

  result(message: Fields): void {
    if (this.#sign(this.#isForeign(message) ? 'foreign-end' : 'end', message) === 'stray') {
      if (fieldsOf(message.origin).kind === 'task-notification') this.ends.swallow(originRun(message));
      return;
    }
    this.#answers(message);
    const text = textOf(message.result);
    const end = outcomeOf(message);
    // A local command answers only in its result.
    if (!this.#hasText && text !== null && end.kind === 'success') {
      const id = `${this.#writer.turn?.runId}/result`;
      this.#writer.speaker().say('text', id, text);
      this.#writer.speaker().endText(id);
    }
    this.#writer.finish(end, { result: message });
  }

  /** The cause and the answers of the open turn, which ends, as finally known. @param result the agent's, if any */
  settle(end: TurnEnd, { result }: TurnAbout): TurnAbout {
    const said = fieldsOf(result);
    const runId = originRun(said);
    const kind = this.#writer.turn?.kind ?? 'user';
    // The model was never reached: the next turn gets the same notifications.
    const unanswered = end.kind === 'failed' && end.code === 'api_error';
    const { causes, folded } = this.ends.settle({ kind, runId, guess: this.#guess, unanswered });
    if (kind === 'between-run' && runId !== null && !causes.some((one) => one.runId === runId)) {
      // A notification that an earlier turn seemed to answer got a turn of its own after all.
      const late = this.#endOfRun(runId);
      if (late !== null) causes.push(late);
    }
    return {
      result: result === undefined ? undefined : resultSummary(said),
      trigger: causes.length > 0 ? taskTrigger(causes) : otherTrigger(said),
      foldedTaskIds: folded.map(({ taskId }) => taskId),
    };
  }

  #sign(input: Exclude<TurnInput, 'gone'>, message: Fields): Verdict {
    return this.#writer.sign(input, () => this.#causeOf(message));
  }

  /** The cause of a turn that begins with a message. */
  #causeOf(message: Fields): TurnCause {
    const named = userMessageIds(message);
    const guess = this.ends.waking();
    const waiting = this.#initsNameMessages || guess.length > 0 ? [] : [...this.#unanswered];
    const userMessages = this.#answered(named.length > 0 ? named : waiting);
    const kind = userMessages.length > 0 ? 'user' : 'between-run';
    this.ends.opened(kind);
    this.#guess = guess;
    this.#hasActed = false;
    this.#hasText = false;
    if (kind === 'user') return { kind, userMessageIds: userMessages };
    const parentRunId = guess.find((end) => end.startedInRun !== null)?.startedInRun ?? null;
    return { kind, trigger: guess.length > 0 ? taskTrigger(guess) : otherTrigger(message), parentRunId };
  }

  /** A result that is empty, or names another cause than the open turn's, ends nothing. */
  #isForeign(result: Fields): boolean {
    const empty = result.num_turns === 0 && result.result === '' && result.is_error !== true;
    const { turn } = this.#writer;
    if (turn === null) return empty;
    const names = userMessageIds(result).length > 0;
    if (names || fieldsOf(result.origin).kind !== 'task-notification') return false;
    return turn.kind === 'user' || (empty && this.#hasActed);
  }

  /** The open turn answers the user messages that a message of the agent names. */
  #answers(message: Fields): void {
    if (this.#writer.turn !== null) this.#writer.answers(this.#answered(userMessageIds(message)));
  }

  #answered(ids: readonly string[]): readonly string[] {
    for (const id of ids) this.#unanswered.delete(id);
    return ids;
  }
}
