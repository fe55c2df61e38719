import type { TurnTrigger } from '@interlude/protocol/ag-ui';
import type { SessionWriter, TurnEnd } from '../writer/session-writer';
import type { AgentProfile } from './agent-profiles';

/** Without content for so long, a turn whose end is not told has ended. */
export const QUIET_MS = 10_000;
/** An answer follows the result it belongs to within milliseconds, unless the agent holds it back. */
export const SETTLE_MS = 1_000;
/** More prompts than that are not in flight with any agent. */
const MAX_PROMPTS = 256;

interface Prompt {
  /** The id of its request. */
  key: string;
  messageIds: readonly string[];
  /** A turn that answers it has begun. */
  begun: boolean;
  /** What Claude Code calls it. */
  uuid: string | null;
  /** Its request is answered, and its turn goes on until the agent is idle (ACP v2). */
  isAccepted?: true;
  /** Cancelled while it was unanswered. An agent that is about to end its turn then may answer that it has. */
  isCancelled?: true;
}

/**
 * Which turn is open in a session, and which prompts it answers.
 *
 * ACP v1 ties a reply to its prompt only by time: what comes while a prompt is unanswered belongs to it. That is wrong as
 * soon as the agent works by itself (then the reply stands "one late" for ever), so whatever more an agent says of its
 * turns decides first:
 * - A prompt begins its turn when it is sent, if nothing runs. With an agent that marks the turns it begins by itself, it
 *   begins with the first content instead: that mark may still come before, and what follows it answers nobody.
 * - A turn begins without a prompt at the agent's mark, or at content while no prompt is unanswered. It ends at the mark,
 *   at the next prompt, or after QUIET_MS without content, where no call runs and nobody is asked; then as inferred. Only
 *   one that began with a mark waits for the mark of its end.
 * - A text between prompts without that mark, of an agent that has one, is a remark of its program ("Task stopped by
 *   user"): it stands outside of turns, and is complete after SETTLE_MS.
 * - A user turn ends with the answer to its last prompt. Claude Code answers a prompt early if the one behind it goes into
 *   the same turn, so there it takes a result as well; and where the answer is held back for background work, the result
 *   alone, SETTLE_MS later.
 * - An agent that holds back the answer and gives no results (Copilot) has ended its turn once it has said something, is
 *   silent for QUIET_MS, runs no call, asks nobody, and background work is known to run: then that is what the prompt waits
 *   for. If it was only thinking, what it says next stands in a turn of its own, which names nobody's message.
 */
export class PromptTurns {
  profile: AgentProfile = { limits: [] };
  /** What wakes the agent, where it does not say. */
  cause = (): TurnTrigger => ({ kind: 'unknown', taskIds: [] });
  readonly #writer: SessionWriter;
  /** A call runs, or somebody is asked: silence means nothing. */
  readonly #isBusy: () => boolean;
  readonly #beforeEnd: (end: TurnEnd) => void;
  #prompts: Prompt[] = [];
  #isMarked = false;
  #isCancelled = false;
  /** The turn's result has come, and its answer not yet. */
  #settled: { at: number; end: TurnEnd } | null = null;
  #lastContentAt = 0;
  #spoke = false;
  /** The open turn has said something and done nothing. */
  #isTextOnly = true;
  /** Then the agent's id of what it said last; null: without one. */
  #lastTextId: string | null | undefined;
  /** When a remark outside of turns was last added to. */
  #remarkedAt: number | null = null;
  /** The prompt whose turn is open though the agent did not take it: it may be given again. */
  #untaken: { prompt: Prompt; end: TurnEnd } | null = null;

  constructor(writer: SessionWriter, isBusy: () => boolean, beforeEnd: (end: TurnEnd) => void) {
    this.#writer = writer;
    this.#isBusy = isBusy;
    this.#beforeEnd = beforeEnd;
  }

  sent(key: string, messageIds: readonly string[], now: number): void {
    if (this.#prompts.length >= MAX_PROMPTS) this.#prompts.shift();
    const isAgain = this.#untaken?.prompt.messageIds.join() === messageIds.join();
    if (this.#untaken !== null && !isAgain) this.#end(this.#untaken.end);
    this.#untaken = null;
    const { isAwaited } = this;
    this.#prompts.push({ key, messageIds, begun: isAgain, uuid: null });
    if (!this.profile.marksTurns) this.#beginNext(now);
    else if ((this.profile.marksTurns === 'both' || this.#isRemark) && !isAwaited) this.#endUnmarked();
  }

  /** The agent refuses a prompt for want of its session. What it has said of it already, it has taken. */
  untaken(key: string, end: TurnEnd, now: number): void {
    const prompt = this.#prompts.find((one) => one.key === key);
    if (prompt?.begun === true && this.#writer.turn?.spoke !== false) {
      this.answered(key, end, {}, now);
      return;
    }
    this.#prompts = this.#prompts.filter((one) => one !== prompt);
    if (prompt?.begun === true) this.#untaken = { prompt, end };
  }

  /** The answer to a prompt. */
  answered(key: string, answer: TurnEnd, about: { result?: object }, now: number): void {
    const prompt = this.#prompts.find((one) => one.key === key);
    if (prompt === undefined || prompt.isAccepted === true) return;
    if (this.profile.reportsState === true && answer.kind === 'success') {
      prompt.isAccepted = true;
      if (!prompt.begun && this.#writer.turn !== null) this.#join(prompt);
      return;
    }
    this.#prompts = this.#prompts.filter((one) => one !== prompt);
    const isCancelled = prompt.isCancelled === true || (this.#isCancelled && answer.kind === 'failed');
    const end: TurnEnd = isCancelled ? { kind: 'cancelled' } : answer;
    if (!prompt.begun) this.#answeredUnbegun(prompt, end, now);
    else if (this.#writer.turn === null) this.#failLate(end);
    else if (this.#goesOnWithNext(end)) {
      const next = this.#nextUnnamed;
      if (next !== undefined) this.#join(next);
    } else if (!this.#isMarked && !this.#prompts.some(({ begun }) => begun)) this.#end(end, about);
    if (!this.profile.marksTurns) this.#beginNext(now);
  }

  /** The agent itself said or did something. @param text what it says, by the agent's id of that; undefined: no text */
  heard(now: number, text?: { messageId: string | null }): void {
    const isText = text !== undefined;
    if (this.#settled !== null) this.#end(this.#settled.end);
    // The agent's next message, with nothing done since the last, answers the prompt that waits.
    if (
      isText &&
      this.#lastTextId !== undefined &&
      text.messageId !== this.#lastTextId &&
      this.#nextUnnamed !== undefined
    ) {
      this.#endUnmarked();
    }
    if (this.#writer.turn === null) {
      if (isText && this.profile.marksTurns === 'both' && !this.isAwaited) {
        this.#remarkedAt = now;
        return;
      }
      const next = this.#nextUnnamed;
      if (next !== undefined) this.#begin(next, now);
      else this.#beginBetweenRun(this.cause(), false, now);
    }
    this.#lastContentAt = now;
    if (isText) this.#spoke = true;
    this.#lastTextId = isText && this.#isTextOnly ? text.messageId : undefined;
    if (!isText) this.#isTextOnly = false;
  }

  /** The agent says that it begins a turn by itself. */
  ownBegins(trigger: TurnTrigger, now: number): void {
    if (this.#settled !== null) this.#end(this.#settled.end);
    if (this.#writer.turn === null) this.#beginBetweenRun(trigger, true, now);
    else if (this.#isBetweenRun) this.#writer.setTrigger(trigger);
  }

  /** The agent says that it works (ACP v2): at a prompt that waits, else by itself. */
  working(now: number): void {
    const next = this.#writer.turn === null ? this.#nextUnnamed : undefined;
    if (next !== undefined) this.#begin(next, now);
    else this.ownBegins(this.cause(), now);
  }

  /** The agent says that it works no more (ACP v2). */
  idle(end: TurnEnd, now: number): void {
    // What it accepted and has said nothing of is done with it.
    for (const prompt of this.#prompts) {
      if (prompt.isAccepted !== true || prompt.begun) continue;
      if (this.#writer.turn === null) this.#begin(prompt, now);
      else this.#join(prompt);
    }
    if (this.#isBetweenRun) this.ownEnds(end);
    else if (this.profile.reportsState !== true) this.resulted(end, now);
    else if (this.#writer.turn !== null) this.#end(this.#isCancelled ? { kind: 'cancelled' } : end);
    this.#prompts = this.#prompts.filter(({ begun, isAccepted }) => !begun || isAccepted !== true);
  }

  /** The agent says that a turn it had begun by itself is over. */
  ownEnds(end: TurnEnd, trigger: TurnTrigger | null = null): void {
    if (!this.#isBetweenRun) return;
    if (trigger !== null) this.#writer.setTrigger(trigger);
    this.#end(this.#isCancelled ? { kind: 'cancelled' } : end);
  }

  /** The result of a turn that a person asked for: its answer follows, if it is not held back. */
  resulted(end: TurnEnd, now: number): void {
    if (this.#writer.turn === null) {
      const next = this.#prompts.find(({ begun }) => !begun);
      if (next !== undefined) this.#begin(next, now);
    }
    if (this.#writer.turn === null || this.#settled !== null) return;
    this.#settled = { at: now, end: this.#isCancelled ? { kind: 'cancelled' } : end };
  }

  /** What Claude Code says of a prompt: its own name for it as it is queued, and when it takes it up. */
  lifecycle(uuid: string, state: unknown, now: number): void {
    if (state === 'queued') {
      const unnamed = this.#prompts.find((one) => one.uuid === null && !one.begun);
      if (unnamed !== undefined) unnamed.uuid = uuid;
    }
    if (state !== 'started') return;
    const prompt = this.#prompts.find((one) => one.uuid === uuid && !one.begun);
    if (prompt === undefined) return;
    if (this.#settled !== null) this.#end(this.#settled.end);
    if (this.#writer.turn === null) this.#begin(prompt, now);
    else this.#join(prompt);
  }

  /** Somebody asked for the turn to be cancelled. */
  cancelled(): void {
    this.#isCancelled = this.#writer.turn !== null;
    // Of an agent that queues prompts, the others may go on.
    if (this.profile.handsOver !== true) for (const prompt of this.#prompts) prompt.isCancelled = true;
  }

  /** A prompt is unanswered. */
  get isAwaited(): boolean {
    return this.#prompts.length > 0;
  }

  get dueAt(): number | null {
    if (this.#settled !== null) return this.#settled.at + SETTLE_MS;
    if (this.#remarkedAt !== null) return this.#remarkedAt + SETTLE_MS;
    return this.#endsBySilence() ? this.#lastContentAt + QUIET_MS : null;
  }

  elapsed(now: number): void {
    const { dueAt } = this;
    if (dueAt === null || dueAt > now) return;
    if (this.#settled !== null) this.#end(this.#settled.end);
    else if (this.#remarkedAt !== null) this.#endRemark();
    else this.#end({ kind: 'success' }, { isInferred: true });
  }

  /** The agent has gone, and its turn with it. */
  forget(): void {
    this.#prompts = [];
    this.#reset();
  }

  get #isBetweenRun(): boolean {
    return this.#writer.turn?.kind === 'between-run';
  }

  /** The next prompt to begin with. Of one that Claude Code has named, it says when it begins. */
  get #nextUnnamed(): Prompt | undefined {
    return this.#prompts.find(({ begun, uuid }) => !begun && uuid === null);
  }

  /** All that it said has no id, as its program's remarks: the agent's own messages have one. */
  get #isRemark(): boolean {
    return this.#lastTextId === null;
  }

  #endsBySilence(): boolean {
    const { turn } = this.#writer;
    if (turn === null || this.#isMarked || this.#isBusy()) return false;
    if (turn.kind === 'between-run') return true;
    return !this.profile.marksTurns && this.#spoke && this.#writer.openTasks.length > 0;
  }

  /** No result has come, and others wait: this one was answered because the turn goes on with them. */
  #goesOnWithNext(end: TurnEnd): boolean {
    return (
      this.profile.handsOver === true && end.kind === 'success' && this.#settled === null && this.#prompts.length > 0
    );
  }

  #answeredUnbegun(prompt: Prompt, end: TurnEnd, now: number): void {
    const { turn } = this.#writer;
    // It was cancelled together with the turn before it, unread: no turn answers it.
    if (turn !== null && end.kind === 'cancelled') return;
    if (turn !== null && end.kind === 'success') {
      this.#join(prompt);
      // The mark of its end did not come before the answer, and nothing else will end it.
      if (this.#isBetweenRun && !this.#isMarked && !this.isAwaited) this.#end(end);
      return;
    }
    this.#endUnmarked();
    if (this.#writer.turn === null) {
      this.#begin(prompt, now);
      this.#end(end);
    } else this.#writeFailure(end);
  }

  #failLate(end: TurnEnd): void {
    this.#beforeEnd(end);
    this.#writeFailure(end);
  }

  #writeFailure(end: TurnEnd): void {
    if (end.kind === 'failed') this.#writer.notice(end.message, 'error');
  }

  #beginNext(now: number): void {
    const next = this.#prompts.find(({ begun }) => !begun);
    if (next === undefined) return;
    if (this.#isBetweenRun) this.#end({ kind: 'success' }, { isInferred: true });
    if (this.#writer.turn === null) this.#begin(next, now);
  }

  #endUnmarked(): void {
    if (this.#isBetweenRun && !this.#isMarked) this.#end({ kind: 'success' }, { isInferred: true });
  }

  #endRemark(): void {
    if (this.#remarkedAt !== null) this.#writer.parts().endText();
    this.#remarkedAt = null;
  }

  #begin(prompt: Prompt, now: number): void {
    prompt.begun = true;
    this.#reset();
    this.#lastContentAt = now;
    this.#writer.begin({ kind: 'user', userMessageIds: prompt.messageIds });
  }

  #join(prompt: Prompt): void {
    prompt.begun = true;
    this.#writer.addAnswered(prompt.messageIds);
  }

  #beginBetweenRun(trigger: TurnTrigger, isMarked: boolean, now: number): void {
    this.#reset();
    this.#isMarked = isMarked;
    this.#lastContentAt = now;
    this.#writer.begin({ kind: 'between-run', trigger });
  }

  #end(end: TurnEnd, about: { isInferred?: boolean; result?: object } = {}): void {
    this.#beforeEnd(end);
    this.#writer.finish(end, about);
    this.#reset();
  }

  #reset(): void {
    this.#endRemark();
    this.#isTextOnly = true;
    this.#lastTextId = undefined;
    this.#untaken = null;
    this.#settled = null;
    this.#isMarked = false;
    this.#isCancelled = false;
    this.#spoke = false;
  }
}
