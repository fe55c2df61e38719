import type { TurnTrigger } from '@interlude/protocol/ag-ui';
import type { SessionWriter, TurnEnd } from '../writer/session-writer';
import type { AgentProfile } from './agent-profiles';

/** A turn whose end is not reported ends after this long without content. */
export const QUIET_MS = 10_000;
/** A response follows its result within milliseconds, unless the agent holds it back. */
export const SETTLE_MS = 1_000;
const MAX_PROMPTS = 256;

interface Prompt {
  /** JSON-RPC id. */
  key: string;
  messageIds: readonly string[];
  /** True if its turn has started. */
  hasTurn: boolean;
  /** Claude Code's id. */
  uuid: string | null;
  /** True if the agent responded, but its turn continues until the agent is idle (ACP v2). */
  isAccepted?: true;
  /**
   * True if it was cancelled before its response. An agent that is about to end the turn may still report success.
   */
  isCancelled?: true;
}

/**
 * Decides which turn is open and which prompts it answers.
 *
 * ACP v1 links a reply to its prompt only by time: everything until the response belongs to the prompt. That fails for
 * agents that work on their own (replies end up "one late"), so other signals take precedence:
 * - A prompt begins its turn when sent, if no turn is open. With an agent that marks between-run turns it begins at the
 *   first content instead: a mark may come first, and content after the mark does not answer the prompt.
 * - A between-run turn begins at the agent's mark, or at content while no prompt is pending. It ends at the mark, at
 *   the next prompt, or (inferred) after QUIET_MS without content, open calls or requests. A turn with a start mark
 *   waits for its end mark.
 * - Unmarked text between prompts, from an agent with marks, is a remark of its program ("Task stopped by user"):
 *   outside turns, complete after SETTLE_MS.
 * - A user turn ends with the response to its last prompt. Claude Code responds early if the next prompt joins the
 *   turn, so its turns also need a result; if background work delays the response, the result alone ends the turn after
 *   SETTLE_MS.
 * - The turn of an agent that delays responses and sends no results (Copilot) ends once the agent has sent content, has
 *   been silent for QUIET_MS without open calls or requests, and has known background work, which delays the response.
 *   If the agent was only thinking, its next content opens another turn.
 */
export class PromptTurns {
  profile: AgentProfile = { limits: [] };
  /** Trigger of a turn the agent does not explain. */
  cause = (): TurnTrigger => ({ kind: 'unknown', taskIds: [] });
  readonly #writer: SessionWriter;
  /** True while calls or requests are open: silence then does not end a turn. */
  readonly #isBusy: () => boolean;
  readonly #beforeEnd: (end: TurnEnd) => void;
  #prompts: Prompt[] = [];
  #isMarked = false;
  #isCancelled = false;
  /** The turn's result, kept until its prompt's response arrives. */
  #settled: { at: number; end: TurnEnd } | null = null;
  #lastContentAt = 0;
  #hasText = false;
  /** True if the turn has no content other than text. */
  #isTextOnly = true;
  /** The agent's id of the turn's last text; null if the text has none. */
  #lastTextId: string | null | undefined;
  /** Time of the latest remark outside turns. */
  #remarkedAt: number | null = null;
  /** A rejected prompt whose turn stays open, because the prompt may be sent again. */
  #rejected: { prompt: Prompt; end: TurnEnd } | null = null;

  constructor(writer: SessionWriter, isBusy: () => boolean, beforeEnd: (end: TurnEnd) => void) {
    this.#writer = writer;
    this.#isBusy = isBusy;
    this.#beforeEnd = beforeEnd;
  }

  sent(key: string, messageIds: readonly string[], now: number): void {
    if (this.#prompts.length >= MAX_PROMPTS) this.#prompts.shift();
    const isAgain = this.#rejected?.prompt.messageIds.join() === messageIds.join();
    if (this.#rejected !== null && !isAgain) this.#end(this.#rejected.end);
    this.#rejected = null;
    const { isAwaited } = this;
    this.#prompts.push({ key, messageIds, hasTurn: isAgain, uuid: null });
    if (!this.profile.marksTurns) this.#beginNext(now);
    else if ((this.profile.marksTurns === 'both' || this.#isRemark) && !isAwaited) this.#endUnmarked();
  }

  /**
   * Handles a prompt that the agent rejected because it lost the session. With content, the prompt counts as processed.
   */
  rejected(key: string, end: TurnEnd, now: number): void {
    const prompt = this.#prompts.find((one) => one.key === key);
    if (prompt?.hasTurn === true && this.#writer.turn?.hasContent !== false) {
      this.responded(key, end, {}, now);
      return;
    }
    this.#prompts = this.#prompts.filter((one) => one !== prompt);
    if (prompt?.hasTurn === true) this.#rejected = { prompt, end };
  }

  /** Handles the response to a prompt. */
  responded(key: string, response: TurnEnd, about: { result?: object }, now: number): void {
    const prompt = this.#prompts.find((one) => one.key === key);
    if (prompt === undefined || prompt.isAccepted === true) return;
    if (this.profile.reportsState === true && response.kind === 'success') {
      prompt.isAccepted = true;
      if (!prompt.hasTurn && this.#writer.turn !== null) this.#join(prompt);
      return;
    }
    this.#prompts = this.#prompts.filter((one) => one !== prompt);
    const isCancelled = prompt.isCancelled === true || (this.#isCancelled && response.kind === 'failed');
    const end: TurnEnd = isCancelled ? { kind: 'cancelled' } : response;
    if (!prompt.hasTurn) this.#respondedEarly(prompt, end, now);
    else if (this.#writer.turn === null) this.#failLate(end);
    else if (this.#continuesWithNext(end)) {
      const next = this.#nextUnnamed;
      if (next !== undefined) this.#join(next);
    } else if (!this.#isMarked && !this.#prompts.some(({ hasTurn }) => hasTurn)) this.#end(end, about);
    if (!this.profile.marksTurns) this.#beginNext(now);
  }

  /** Handles agent content. @param text the agent's id of a text; undefined for other content */
  content(now: number, text?: { messageId: string | null }): void {
    const isText = text !== undefined;
    if (this.#settled !== null) this.#end(this.#settled.end);
    // After a text-only turn, the agent's next message answers the waiting prompt.
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
    if (isText) this.#hasText = true;
    this.#lastTextId = isText && this.#isTextOnly ? text.messageId : undefined;
    if (!isText) this.#isTextOnly = false;
  }

  /** Begins a between-run turn at its mark. */
  betweenRunStarted(trigger: TurnTrigger, now: number): void {
    if (this.#settled !== null) this.#end(this.#settled.end);
    if (this.#writer.turn === null) this.#beginBetweenRun(trigger, true, now);
    else if (this.#isBetweenRun) this.#writer.setTrigger(trigger);
  }

  /** Handles the agent's report that it is working (ACP v2): on a waiting prompt if there is one. */
  working(now: number): void {
    const next = this.#writer.turn === null ? this.#nextUnnamed : undefined;
    if (next !== undefined) this.#begin(next, now);
    else this.betweenRunStarted(this.cause(), now);
  }

  /** Handles the agent's report that it is idle (ACP v2). */
  idle(end: TurnEnd, now: number): void {
    // Accepted prompts without content are done.
    for (const prompt of this.#prompts) {
      if (prompt.isAccepted !== true || prompt.hasTurn) continue;
      if (this.#writer.turn === null) this.#begin(prompt, now);
      else this.#join(prompt);
    }
    if (this.#isBetweenRun) this.betweenRunEnded(end);
    else if (this.profile.reportsState !== true) this.resulted(end, now);
    else if (this.#writer.turn !== null) this.#end(this.#isCancelled ? { kind: 'cancelled' } : end);
    this.#prompts = this.#prompts.filter(({ hasTurn, isAccepted }) => !hasTurn || isAccepted !== true);
  }

  /** Ends a between-run turn at its mark. */
  betweenRunEnded(end: TurnEnd, trigger: TurnTrigger | null = null): void {
    if (!this.#isBetweenRun) return;
    if (trigger !== null) this.#writer.setTrigger(trigger);
    this.#end(this.#isCancelled ? { kind: 'cancelled' } : end);
  }

  /** Handles the result of a user turn. The response follows unless the agent holds it back. */
  resulted(end: TurnEnd, now: number): void {
    if (this.#writer.turn === null) {
      const next = this.#prompts.find(({ hasTurn }) => !hasTurn);
      if (next !== undefined) this.#begin(next, now);
    }
    if (this.#writer.turn === null || this.#settled !== null) return;
    this.#settled = { at: now, end: this.#isCancelled ? { kind: 'cancelled' } : end };
  }

  /** Handles Claude Code's reports about a queued prompt: its id, and the start of work on it. */
  lifecycle(uuid: string, state: unknown, now: number): void {
    if (state === 'queued') {
      const unnamed = this.#prompts.find((one) => one.uuid === null && !one.hasTurn);
      if (unnamed !== undefined) unnamed.uuid = uuid;
    }
    if (state !== 'started') return;
    const prompt = this.#prompts.find((one) => one.uuid === uuid && !one.hasTurn);
    if (prompt === undefined) return;
    if (this.#settled !== null) this.#end(this.#settled.end);
    if (this.#writer.turn === null) this.#begin(prompt, now);
    else this.#join(prompt);
  }

  /** Notes that an interrupt of the turn was sent. */
  cancelled(): void {
    this.#isCancelled = this.#writer.turn !== null;
    // An agent that queues prompts may continue with the remaining ones.
    if (this.profile.respondsEarly !== true) for (const prompt of this.#prompts) prompt.isCancelled = true;
  }

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

  forget(): void {
    this.#prompts = [];
    this.#reset();
  }

  get #isBetweenRun(): boolean {
    return this.#writer.turn?.kind === 'between-run';
  }

  /** Next prompt whose turn can begin. Claude Code itself reports the start of prompts it has named. */
  get #nextUnnamed(): Prompt | undefined {
    return this.#prompts.find(({ hasTurn, uuid }) => !hasTurn && uuid === null);
  }

  /** True if all text came without an id, as the program's remarks do. Agent messages have ids. */
  get #isRemark(): boolean {
    return this.#lastTextId === null;
  }

  #endsBySilence(): boolean {
    const { turn } = this.#writer;
    if (turn === null || this.#isMarked || this.#isBusy()) return false;
    if (turn.kind === 'between-run') return true;
    return !this.profile.marksTurns && this.#hasText && this.#writer.openTasks.length > 0;
  }

  /** True if the agent responded to a prompt without a result while others wait: the turn continues with them. */
  #continuesWithNext(end: TurnEnd): boolean {
    if (this.profile.respondsEarly !== true || end.kind !== 'success') return false;
    return this.#settled === null && this.#prompts.length > 0;
  }

  #respondedEarly(prompt: Prompt, end: TurnEnd, now: number): void {
    const { turn } = this.#writer;
    // Cancelled along with the previous turn, before the agent read the prompt: no turn answers it.
    if (turn !== null && end.kind === 'cancelled') return;
    if (turn !== null && end.kind === 'success') {
      this.#join(prompt);
      // No end mark preceded the response, so nothing else will end the turn.
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
    const next = this.#prompts.find(({ hasTurn }) => !hasTurn);
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
    prompt.hasTurn = true;
    this.#reset();
    this.#lastContentAt = now;
    this.#writer.begin({ kind: 'user', userMessageIds: prompt.messageIds });
  }

  #join(prompt: Prompt): void {
    prompt.hasTurn = true;
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
    this.#rejected = null;
    this.#settled = null;
    this.#isMarked = false;
    this.#isCancelled = false;
    this.#hasText = false;
  }
}
