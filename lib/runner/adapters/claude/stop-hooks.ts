import { containsText } from './final-text';

/** A hook's own report of its time and prompt. */
export interface HookClaim {
  /** By the hook's own clock, epoch milliseconds; null if unknown. */
  at: number | null;
  /** The CLI's id of the prompt that opened the turn; null if unknown. */
  promptId: string | null;
}

export interface HookMoment {
  /** By the hook's own clock, else its arrival. Epoch milliseconds. */
  at: number;
  /** True if `at` comes from the hook's own clock. */
  isClocked: boolean;
  promptId: string | null;
}

/** A stop hook that let its turn end. */
export interface Stop extends HookMoment {
  heardAt: number;
  /** Final text according to the hook; null if unknown. */
  text: string | null;
  /** Error that ended the turn, if any. */
  failure: string | null;
}

export interface PendingStop extends Stop {
  /** Arrival of the next prompt, which shows that the agent continues. */
  promptedAt: number | null;
}

/** State that the transcript lacks, stored as JSON for its next reader. */
export interface StopHooksState {
  stops: readonly PendingStop[];
  /** Final texts of ended turns whose hooks have not arrived. Oldest first. */
  unheard: readonly (readonly string[])[];
  /** Times of prompts whose lines and turns have not arrived yet. Oldest first. */
  prompts: readonly number[];
  /** True if the hook of the prompt that opened the turn has arrived. */
  isPromptHeard: boolean;
}

type Place = 'before' | 'open' | 'ahead';

/** Longest delay of a prompt's hook after the timestamp in its transcript line. The line is written after the hook. */
const PROMPT_HOOK_MS = 2_000;
/** Stop hooks ahead of the transcript, and ended turns waiting for their hooks. */
const MAX_STOPS = 16;
/** Prompt ids kept after their turn. */
const MAX_PAST = 64;
/** If a line's timestamp differs from the time of reading by more than this, the clocks disagree. */
const CLOCKS_AGREE_MS = 3_600_000;

/**
 * Matches stop hooks to turns, whenever they arrive and however far the transcript lags. Uses the best evidence
 * available: the prompt id in both hook and lines; else the hook's timestamp, which shares the lines' clock; else, for
 * third-party hooks, the arrival and the text.
 *
 * Ordering: the time of a hook is between the timestamps of its turn's first line and of the next turn's first line.
 */
export class StopHooks {
  #stops: readonly PendingStop[] = [];
  #unclaimed: readonly (readonly string[])[] = [];
  /** Times of prompts whose turns have not arrived yet. */
  #pendingPrompts: readonly number[] = [];
  /** Prompts of the open or last turn. */
  #prompts: readonly string[] = [];
  #pastPrompts: readonly string[] = [];
  #namesPrompts = false;
  #openedAt: number | null = null;
  /** False if agent content opened the turn: an earlier turn of the same prompt may have ended. */
  #isByPrompt = false;
  #isPromptHookSeen = false;
  #endedAt = 0;
  #reachedAt = 0;

  get state(): StopHooksState {
    const isPromptHeard = this.#isPromptHookSeen;
    return { stops: this.#stops, unheard: this.#unclaimed, prompts: this.#pendingPrompts, isPromptHeard };
  }

  /** Stop hook of the open turn. */
  get ofOpenTurn(): PendingStop | null {
    return this.#stops.find((stop) => this.#place(stop) === 'open') ?? null;
  }

  /**
   * Stop hook of a turn that is not in the transcript yet. The open turn is over, although more of its lines may
   * follow.
   */
  get ahead(): PendingStop | null {
    return this.#stops.find((stop) => this.#place(stop) === 'ahead') ?? null;
  }

  /** True for a hook of a turn not in the transcript yet. */
  isAhead(moment: HookMoment): boolean {
    const { at, promptId, isClocked } = moment;
    if (promptId !== null && this.#namesPrompts) return !this.#knows(promptId);
    return isClocked && this.#isBehindPrompt(at);
  }

  /** Restores the state of an earlier reader of this transcript. */
  restore({ stops, unheard, prompts, isPromptHeard }: StopHooksState): void {
    this.#pendingPrompts = prompts;
    this.#isPromptHookSeen = isPromptHeard;
    this.#stops = stops.filter((stop) => this.#place(stop) !== 'before');
    this.#unclaimed = unheard;
  }

  /** @param hasFinalText true if the transcript has the open turn's final text */
  ran(stop: Stop, hasFinalText: boolean): void {
    if (this.#place(stop) === 'before') return;
    if (!this.#isReliable(stop) && this.#claimsEnded(stop, hasFinalText)) return;
    const last = this.#stops.findLast((one) => isRepeat(one, stop));
    if (last === undefined) {
      this.#stops = [...this.#stops.slice(-(MAX_STOPS - 1)), { ...stop, promptedAt: null }];
      return;
    }
    const both = { ...last, text: last.text ?? stop.text, failure: last.failure ?? stop.failure };
    this.#stops = this.#stops.map((one) => (one === last ? both : one));
  }

  /** Handles the hook of a prompt. A prompt that joins the open turn does not begin one. */
  prompted({ at, promptId }: HookMoment, heardAt: number): void {
    if (promptId !== null && this.#knows(promptId)) return;
    const isOfOpen = this.#isByPrompt && !this.#isPromptHookSeen && this.#isPromptOf(this.#openedAt, at);
    if (isOfOpen) this.#isPromptHookSeen = true;
    else if (at > this.#reachedAt)
      this.#pendingPrompts = [...this.#pendingPrompts, at].sort((a, b) => a - b).slice(-MAX_STOPS);
    this.#stops = this.#stops.map((stop) =>
      stop.at <= at && stop.promptedAt === null ? { ...stop, promptedAt: heardAt } : stop,
    );
  }

  /** Notes that the main thread reached this line. Uses its timestamp unless the clocks disagree. */
  reached(madeAt: number, readAt: number): void {
    const at = Math.abs(readAt - madeAt) < CLOCKS_AGREE_MS ? madeAt : readAt;
    this.#reachedAt = Math.max(this.#reachedAt, at);
    this.#pendingPrompts = this.#pendingPrompts.filter((prompt) => prompt > at);
  }

  /** Notes the prompt that a main-thread line names. A turn may have several. */
  named(promptId: string | null): void {
    if (promptId === null || this.#knows(promptId)) return;
    if (this.#openedAt === null) this.#beginPrompt(promptId);
    else this.#prompts = [...this.#prompts, promptId];
  }

  /** @param prompt the prompt that opened the turn; undefined if no such line was read */
  opened(at: number, prompt?: { promptId: string | null }): void {
    this.#isByPrompt = prompt !== undefined;
    if (prompt !== undefined) {
      this.#namesPrompts = prompt.promptId !== null;
      if (prompt.promptId === null || !this.#prompts.includes(prompt.promptId)) this.#beginPrompt(prompt.promptId);
    }
    this.#openedAt = at;
    this.#isPromptHookSeen = prompt !== undefined && this.#isPromptOf(at, this.#pendingPrompts[0]);
    if (this.#isPromptHookSeen) this.#pendingPrompts = this.#pendingPrompts.slice(1);
    this.#stops = this.#stops.filter(
      (stop) => this.#place(stop) !== 'before' && (this.#isNamed(stop) || stop.at >= at),
    );
  }

  /** Notes that a hook blocked the stop, so earlier hooks did not end the turn. */
  blocked(at: number): void {
    this.#stops = this.#stops.filter((stop) => stop.at > at || this.#place(stop) === 'ahead');
  }

  /** Stop hook of a turn that ended at `at`. A later hook belongs to a later turn. */
  ofTurnEndedAt(at: number): PendingStop | null {
    return (
      this.#stops.findLast((stop) => this.#place(stop) === 'open' && (this.#isNamed(stop) || stop.at <= at)) ?? null
    );
  }

  /** Ends the turn because of its hook, or because no lines followed. */
  endByHook(): void {
    const own = this.ofOpenTurn;
    this.#endedAt = own?.at ?? this.#reachedAt;
    this.#openedAt = null;
    this.#stops = this.#stops.filter((stop) => stop !== own && this.#place(stop) !== 'before');
  }

  /**
   * Ends the turn by a line that reports its end.
   * @param texts the turn's final texts
   * @param hasHook true if a stop hook runs at this kind of end
   */
  endByLine(at: number, texts: readonly string[], hasHook: boolean): void {
    const own = this.ofTurnEndedAt(at);
    // Clock skew may date the turn's hook after its end; hooks before that one belong to earlier turns.
    const byText =
      own === null ? this.#stops.findIndex((one) => !this.#isReliable(one) && containsText(texts, one.text)) : -1;
    const left = this.#stops.slice(byText + 1);
    this.#stops = left.filter((stop) => (this.#isNamed(stop) ? this.#place(stop) !== 'open' : stop.at > at));
    if (own !== null || byText >= 0) this.#unclaimed = [];
    else if (hasHook) this.#unclaimed = [...this.#unclaimed.slice(-(MAX_STOPS - 1)), texts];
    this.#endedAt = at;
    this.#openedAt = null;
  }

  drop(stop: PendingStop): void {
    this.#stops = this.#stops.filter((one) => one !== stop);
  }

  /** Drops earlier hooks when the session restarts: they no longer end a turn. */
  clearBefore(at: number): void {
    this.#stops = this.#stops.filter((stop) => stop.at >= at);
  }

  #beginPrompt(promptId: string | null): void {
    this.#pastPrompts = [...this.#pastPrompts, ...this.#prompts].slice(-MAX_PAST);
    this.#prompts = promptId === null ? [] : [promptId];
    if (promptId !== null) this.#namesPrompts = true;
  }

  #knows(promptId: string): boolean {
    return this.#prompts.includes(promptId) || this.#pastPrompts.includes(promptId);
  }

  /** True if a prompt hook at `at` belongs to the line with the timestamp `madeAt`. */
  #isPromptOf(madeAt: number | null, at: number | undefined): boolean {
    return madeAt !== null && at !== undefined && at >= madeAt && at <= madeAt + PROMPT_HOOK_MS;
  }

  #isBehindPrompt(at: number): boolean {
    return this.#pendingPrompts.some((prompt) => prompt < at);
  }

  #isNamed({ promptId }: HookMoment): boolean {
    return promptId !== null && this.#namesPrompts;
  }

  #isReliable(stop: HookMoment): boolean {
    return stop.isClocked || this.#isNamed(stop);
  }

  #place({ at, promptId, isClocked }: HookMoment): Place {
    const isOpen = this.#openedAt !== null;
    const isEarly = isOpen ? at < (this.#openedAt ?? 0) : at <= this.#endedAt;
    if (promptId !== null && this.#namesPrompts) {
      if (this.#pastPrompts.includes(promptId)) return 'before';
      if (!this.#prompts.includes(promptId)) return 'ahead';
      if (isOpen) return isEarly && !this.#isByPrompt ? 'before' : 'open';
      return isEarly ? 'before' : 'ahead';
    }
    if (isClocked && isEarly) return 'before';
    return isOpen && !this.#isBehindPrompt(at) ? 'open' : 'ahead';
  }

  /**
   * True if a hook belongs to an ended turn that still lacks one: the hook has that turn's final text, or has no text
   * while the open turn has not reached its final text.
   */
  #claimsEnded({ text }: Stop, hasFinalText: boolean): boolean {
    const noText = text === null && this.#openedAt !== null && !hasFinalText;
    const late = noText ? this.#unclaimed.length - 1 : this.#unclaimed.findIndex((texts) => containsText(texts, text));
    if (late < 0) return false;
    // Hooks of earlier turns can no longer arrive.
    this.#unclaimed = this.#unclaimed.slice(late + 1);
    return true;
  }
}

/** True for a repeated hook of the same turn, which may lack fields. */
function isRepeat(one: PendingStop, stop: Stop): boolean {
  if (one.promptId !== stop.promptId || one.isClocked !== stop.isClocked) return false;
  if (stop.isClocked) return one.at === stop.at;
  return one.promptedAt === null && (stop.text === null || one.text === null || stop.text === one.text);
}
