import { containsText } from './final-text';

/** What a hook says about itself. */
export interface HookClaim {
  /** When it ran, by its own clock. Epoch milliseconds; null if it does not say. */
  at: number | null;
  /** The CLI's id of the prompt that began its turn; null if it does not say. */
  promptId: string | null;
}

/** When a hook ran, and for which prompt. */
export interface HookMoment {
  /** Epoch milliseconds: by the hook's own clock, or when it was heard. */
  at: number;
  /** The hook itself said when it ran. */
  isClocked: boolean;
  promptId: string | null;
}

/** A stop hook as it was heard. It ran and let the turn end. */
export interface Stop extends HookMoment {
  heardAt: number;
  /** The agent's last words according to the hook; null if it did not say. */
  text: string | null;
  /** Why the turn died, if it did. */
  failure: string | null;
}

export interface PendingStop extends Stop {
  /** When the next prompt was heard of: the agent goes on. */
  promptedAt: number | null;
}

/** What another reader of the same transcript could not read from it. JSON. */
export interface StopHooksState {
  /** Oldest first. */
  stops: readonly PendingStop[];
  /** The last words of turns that are over and whose hooks were not heard. Oldest first. */
  unheard: readonly (readonly string[])[];
  /** When prompts were heard of whose lines have not come yet: their turns are still to come. Oldest first. */
  prompts: readonly number[];
  /** The hook of the prompt that opened the turn was heard. */
  isPromptHeard: boolean;
}

type Place = 'before' | 'open' | 'ahead';

/** The line of a prompt is made before its hook runs, and written after. The hook may take this long to start. */
const PROMPT_HOOK_MS = 2_000;
/** Most stop hooks that are ahead of their transcript, and most turns that are ahead of their stop hooks. */
const MAX_STOPS = 16;
/** Most prompts whose ids are kept after their turn. */
const MAX_PAST = 64;
/** If a line is read later than this after it was made, by its own clock, the clocks disagree. */
const CLOCKS_AGREE_MS = 3_600_000;

/**
 * Which turn a stop hook ended, whenever it is heard and however far behind the transcript is. It goes by the best
 * evidence there is: the prompt that both the hook and the lines name; else the time the hook ran, on its own clock,
 * which the lines share; else, for foreign hooks, when it was heard and what it said.
 *
 * Ordering: a hook runs after the first line of its turn was made, and before the first line of the next.
 */
export class StopHooks {
  #stops: readonly PendingStop[] = [];
  #unclaimed: readonly (readonly string[])[] = [];
  /** When prompts were heard of whose turns are still to come. */
  #pendingPrompts: readonly number[] = [];
  /** Prompts of the turn that is open, or was last. */
  #prompts: readonly string[] = [];
  #past: readonly string[] = [];
  #namesPrompts = false;
  #openedAt: number | null = null;
  /** If not, only the agent's own words opened the turn: an earlier turn of the same prompt may have ended. */
  #isByPrompt = false;
  /** The hook of the prompt that opened the turn was heard. */
  #isPromptHeard = false;
  #overAt = 0;
  #reachedAt = 0;

  get state(): StopHooksState {
    const isPromptHeard = this.#isPromptHeard;
    return { stops: this.#stops, unheard: this.#unclaimed, prompts: this.#pendingPrompts, isPromptHeard };
  }

  /** The stop of the open turn. */
  get own(): PendingStop | null {
    return this.#stops.find((stop) => this.#place(stop) === 'open') ?? null;
  }

  /** A stop of a turn that has not begun in the transcript: so the open one is over, though lines of it may still come. */
  get ahead(): PendingStop | null {
    return this.#stops.find((stop) => this.#place(stop) === 'ahead') ?? null;
  }

  /** Whether a hook ran in a turn that is not in the transcript yet: a prompt was heard of whose line has not come. */
  isAhead(moment: HookMoment): boolean {
    const { at, promptId, isClocked } = moment;
    if (promptId !== null && this.#namesPrompts) return !this.#knows(promptId);
    return isClocked && this.#isBehindPrompt(at);
  }

  /** As another reader of the same transcript left it. */
  recall({ stops, unheard, prompts, isPromptHeard }: StopHooksState): void {
    this.#pendingPrompts = prompts;
    this.#isPromptHeard = isPromptHeard;
    this.#stops = stops.filter((stop) => this.#place(stop) !== 'before');
    this.#unclaimed = unheard;
  }

  /** @param saidLastWord whether the transcript has the open turn's last words */
  heard(stop: Stop, saidLastWord: boolean): void {
    if (this.#place(stop) === 'before') return;
    if (!this.#isReliable(stop) && this.#claimsEnded(stop, saidLastWord)) return;
    const last = this.#stops.findLast((one) => isRepeat(one, stop));
    if (last === undefined) {
      this.#stops = [...this.#stops.slice(-(MAX_STOPS - 1)), { ...stop, promptedAt: null }];
      return;
    }
    const both = { ...last, text: last.text ?? stop.text, failure: last.failure ?? stop.failure };
    this.#stops = this.#stops.map((one) => (one === last ? both : one));
  }

  /** A prompt was heard of. What the agent is told in mid-turn is a prompt too, but begins no turn. */
  prompted({ at, promptId }: HookMoment, heardAt: number): void {
    if (promptId !== null && this.#knows(promptId)) return;
    const isOfOpen = this.#isByPrompt && !this.#isPromptHeard && this.#isPromptOf(this.#openedAt, at);
    if (isOfOpen) this.#isPromptHeard = true;
    else if (at > this.#reachedAt)
      this.#pendingPrompts = [...this.#pendingPrompts, at].sort((a, b) => a - b).slice(-MAX_STOPS);
    this.#stops = this.#stops.map((stop) =>
      stop.at <= at && stop.promptedAt === null ? { ...stop, promptedAt: heardAt } : stop,
    );
  }

  /** The main thread has come to this line. The time it was made counts, unless the clocks disagree. */
  reached(madeAt: number, readAt: number): void {
    const at = Math.abs(readAt - madeAt) < CLOCKS_AGREE_MS ? madeAt : readAt;
    this.#reachedAt = Math.max(this.#reachedAt, at);
    this.#pendingPrompts = this.#pendingPrompts.filter((prompt) => prompt > at);
  }

  /** A line of the main thread names the prompt it belongs to. One turn may be told several. */
  named(promptId: string | null): void {
    if (promptId === null || this.#knows(promptId)) return;
    if (this.#openedAt === null) this.#beginPrompt(promptId);
    else this.#prompts = [...this.#prompts, promptId];
  }

  /** A turn opens. @param prompt what asked for it; undefined if no such line was read */
  opened(at: number, prompt?: { promptId: string | null }): void {
    this.#isByPrompt = prompt !== undefined;
    if (prompt !== undefined) {
      this.#namesPrompts = prompt.promptId !== null;
      if (prompt.promptId === null || !this.#prompts.includes(prompt.promptId)) this.#beginPrompt(prompt.promptId);
    }
    this.#openedAt = at;
    this.#isPromptHeard = prompt !== undefined && this.#isPromptOf(at, this.#pendingPrompts[0]);
    if (this.#isPromptHeard) this.#pendingPrompts = this.#pendingPrompts.slice(1);
    this.#stops = this.#stops.filter(
      (stop) => this.#place(stop) !== 'before' && (this.#isNamed(stop) || stop.at >= at),
    );
  }

  /** Another hook holds the agent: the hooks that ran before did not end its turn. */
  held(at: number): void {
    this.#stops = this.#stops.filter((stop) => stop.at > at || this.#place(stop) === 'ahead');
  }

  /** The hook of a turn that ended then, if it was heard. A hook that ran later belongs to a later turn. */
  ownAt(at: number): PendingStop | null {
    return (
      this.#stops.findLast((stop) => this.#place(stop) === 'open' && (this.#isNamed(stop) || stop.at <= at)) ?? null
    );
  }

  /** The turn is over because its hook says so, or because nothing more came of it. */
  overByHook(): void {
    const own = this.own;
    this.#overAt = own?.at ?? this.#reachedAt;
    this.#openedAt = null;
    this.#stops = this.#stops.filter((stop) => stop !== own && this.#place(stop) !== 'before');
  }

  /**
   * A line says that the turn is over.
   * @param said the turn's last words
   * @param hasHook whether a hook runs at such an end
   */
  overByLine(at: number, said: readonly string[], hasHook: boolean): void {
    const own = this.ownAt(at);
    // its own hook may seem later than its end, depending on the clocks; those before it belong to earlier turns
    const bySaid =
      own === null ? this.#stops.findIndex((one) => !this.#isReliable(one) && containsText(said, one.text)) : -1;
    const left = this.#stops.slice(bySaid + 1);
    this.#stops = left.filter((stop) => (this.#isNamed(stop) ? this.#place(stop) !== 'open' : stop.at > at));
    if (own !== null || bySaid >= 0) this.#unclaimed = [];
    else if (hasHook) this.#unclaimed = [...this.#unclaimed.slice(-(MAX_STOPS - 1)), said];
    this.#overAt = at;
    this.#openedAt = null;
  }

  drop(stop: PendingStop): void {
    this.#stops = this.#stops.filter((one) => one !== stop);
  }

  /** The session begins anew: hooks that ran before end nothing. */
  clearBefore(at: number): void {
    this.#stops = this.#stops.filter((stop) => stop.at >= at);
  }

  #beginPrompt(promptId: string | null): void {
    this.#past = [...this.#past, ...this.#prompts].slice(-MAX_PAST);
    this.#prompts = promptId === null ? [] : [promptId];
    if (promptId !== null) this.#namesPrompts = true;
  }

  #knows(promptId: string): boolean {
    return this.#prompts.includes(promptId) || this.#past.includes(promptId);
  }

  /** Whether a prompt that was heard of at `at` is the one whose line was made at `madeAt`. */
  #isPromptOf(madeAt: number | null, at: number | undefined): boolean {
    return madeAt !== null && at !== undefined && at >= madeAt && at <= madeAt + PROMPT_HOOK_MS;
  }

  /** Whether a prompt that is still to come ran before this. */
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
    const isEarly = isOpen ? at < (this.#openedAt ?? 0) : at <= this.#overAt;
    if (promptId !== null && this.#namesPrompts) {
      if (this.#past.includes(promptId)) return 'before';
      if (!this.#prompts.includes(promptId)) return 'ahead';
      if (isOpen) return isEarly && !this.#isByPrompt ? 'before' : 'open';
      return isEarly ? 'before' : 'ahead';
    }
    if (isClocked && isEarly) return 'before';
    return isOpen && !this.#isBehindPrompt(at) ? 'open' : 'ahead';
  }

  /**
   * Whether a hook belongs to a turn that is over and still waits for its hook: because it has that turn's last words,
   * or because it has none while the open turn has not come to its own.
   */
  #claimsEnded({ text }: Stop, saidLastWord: boolean): boolean {
    const isMute = text === null && this.#openedAt !== null && !saidLastWord;
    const late = isMute ? this.#unclaimed.length - 1 : this.#unclaimed.findIndex((said) => containsText(said, text));
    if (late < 0) return false;
    // the hooks of earlier turns will not come any more
    this.#unclaimed = this.#unclaimed.slice(late + 1);
    return true;
  }
}

/** Whether a hook calls once more for the same turn, which it may know less about. */
function isRepeat(one: PendingStop, stop: Stop): boolean {
  if (one.promptId !== stop.promptId || one.isClocked !== stop.isClocked) return false;
  if (stop.isClocked) return one.at === stop.at;
  return one.promptedAt === null && (stop.text === null || one.text === null || stop.text === one.text);
}
