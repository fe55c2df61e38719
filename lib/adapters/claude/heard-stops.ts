import { isSaidBy } from './said-text';

/** What a hook says of itself. */
export interface HookClaim {
  /** When it ran, by its own clock. Epoch milliseconds; null where it does not say. */
  at: number | null;
  /** The CLI's name for the prompt whose turn it is; null where it does not say. */
  promptId: string | null;
}

/** When a hook ran, and for which prompt. */
export interface HookMoment {
  /** Epoch milliseconds: by the hook's own clock, or when it was heard. */
  at: number;
  /** The hook said itself when it ran. */
  isClocked: boolean;
  promptId: string | null;
}

/** A stop hook as it is heard. It ran and let the turn end. */
export interface Stop extends HookMoment {
  heardAt: number;
  /** What the agent said last, by the hook's word; null where the hook did not say. */
  text: string | null;
  /** Why the turn died, where it did. */
  failure: string | null;
}

export interface HeardStop extends Stop {
  /** When the next prompt was heard of: the agent goes on. */
  promptedAt: number | null;
}

/** What of it another reader of the same transcript does not read there. JSON. */
export interface HeardStopsState {
  /** Oldest first. */
  stops: readonly HeardStop[];
  /** What was said last by turns that are over and whose hooks were not heard. Oldest first. */
  unheard: readonly (readonly string[])[];
  /** When prompts were heard of that no line has come up to: turns are to come. Oldest first. */
  prompts: readonly number[];
}

type Place = 'before' | 'open' | 'ahead';

/** The line of a prompt is made before its hook runs, and written behind it. So long may that hook take to begin. */
const PROMPT_HOOK_MS = 2_000;
/** Most stop hooks that are ahead of their transcript, and most turns that are ahead of their stop hooks. */
const MAX_STOPS = 16;
/** Most prompts of turns that are over whose names are kept. */
const MAX_PAST = 64;
/** A line that is read this long after it was made, by its clock: the clocks disagree. */
const CLOCKS_AGREE_MS = 3_600_000;

/**
 * Which turn a stop hook ended, whenever it is heard and however far the transcript is behind. Told by what is surest:
 * the prompt that both the hook and the lines name; else when the hook ran, by its own clock, which is that of the
 * lines; else, for hooks of other makes, when it was heard, and what it said.
 *
 * Ordering: a hook runs after its turn's first line was made and before the next one's.
 */
export class HeardStops {
  #stops: readonly HeardStop[] = [];
  #unheard: readonly (readonly string[])[] = [];
  /** Those heard of that are to come. */
  #toCome: readonly number[] = [];
  /** Prompts of the turn that is open, or was last. */
  #prompts: readonly string[] = [];
  #past: readonly string[] = [];
  #namesPrompts = false;
  #openedAt: number | null = null;
  /** Else nothing but the agent's own words opened it: a turn of the same prompt may have ended before. */
  #isByPrompt = false;
  /** The hook of the prompt that opened it was. */
  #isPromptHeard = false;
  #overAt = 0;
  #reachedAt = 0;

  get state(): HeardStopsState {
    return { stops: this.#stops, unheard: this.#unheard, prompts: this.#toCome };
  }

  /** Of the open turn. */
  get own(): HeardStop | null {
    return this.#stops.find((stop) => this.#place(stop) === 'open') ?? null;
  }

  /** Of a turn that has not begun in the transcript: the open one is over, whatever is still to come of it. */
  get ahead(): HeardStop | null {
    return this.#stops.find((stop) => this.#place(stop) === 'ahead') ?? null;
  }

  /** A hook that ran in a turn of which the transcript says nothing yet: a prompt has been heard of that is not there. */
  isAhead(moment: HookMoment): boolean {
    const { at, promptId, isClocked } = moment;
    if (promptId !== null && this.#namesPrompts) return !this.#knows(promptId);
    return isClocked && this.#isBehindPrompt(at);
  }

  /** As another reader of the same transcript left it. */
  recall({ stops, unheard, prompts }: HeardStopsState): void {
    this.#toCome = prompts;
    this.#stops = stops.filter((stop) => this.#place(stop) !== 'before');
    this.#unheard = unheard;
  }

  /** @param saidLastWord the open turn has, in the transcript */
  heard(stop: Stop, saidLastWord: boolean): void {
    if (this.#place(stop) === 'before') return;
    if (!this.#isSure(stop) && this.#isOfUnheard(stop, saidLastWord)) return;
    const last = this.#stops.findLast((one) => isAgain(one, stop));
    if (last === undefined) {
      this.#stops = [...this.#stops.slice(-(MAX_STOPS - 1)), { ...stop, promptedAt: null }];
      return;
    }
    const both = { ...last, text: last.text ?? stop.text, failure: last.failure ?? stop.failure };
    this.#stops = this.#stops.map((one) => (one === last ? both : one));
  }

  /** A prompt was heard of. What is told to the agent in mid-turn is a prompt too, and begins none. */
  prompted({ at, promptId }: HookMoment, heardAt: number): void {
    if (promptId !== null && this.#knows(promptId)) return;
    const isOfOpen = this.#isByPrompt && !this.#isPromptHeard && this.#isPromptOf(this.#openedAt, at);
    if (isOfOpen) this.#isPromptHeard = true;
    else if (at > this.#reachedAt) this.#toCome = [...this.#toCome, at].sort((a, b) => a - b).slice(-MAX_STOPS);
    this.#stops = this.#stops.map((stop) =>
      stop.at <= at && stop.promptedAt === null ? { ...stop, promptedAt: heardAt } : stop,
    );
  }

  /** The main thread's talk has come to this line. When it was made says more than when it was read. */
  reached(madeAt: number, readAt: number): void {
    const at = Math.abs(readAt - madeAt) < CLOCKS_AGREE_MS ? madeAt : readAt;
    this.#reachedAt = Math.max(this.#reachedAt, at);
    this.#toCome = this.#toCome.filter((prompt) => prompt > at);
  }

  /** A line of the main thread names the prompt it belongs to. One turn may be told several. */
  named(promptId: string | null): void {
    if (promptId === null || this.#knows(promptId)) return;
    if (this.#openedAt === null) this.#begins(promptId);
    else this.#prompts = [...this.#prompts, promptId];
  }

  /** A turn opens. @param prompt what asks for it; undefined where nothing was read that does */
  opened(at: number, prompt?: { promptId: string | null }): void {
    this.#isByPrompt = prompt !== undefined;
    if (prompt !== undefined) {
      this.#namesPrompts = prompt.promptId !== null;
      if (prompt.promptId === null || !this.#prompts.includes(prompt.promptId)) this.#begins(prompt.promptId);
    }
    this.#openedAt = at;
    this.#isPromptHeard = prompt !== undefined && this.#isPromptOf(at, this.#toCome[0]);
    if (this.#isPromptHeard) this.#toCome = this.#toCome.slice(1);
    this.#stops = this.#stops.filter(
      (stop) => this.#place(stop) !== 'before' && (this.#isNamed(stop) || stop.at >= at),
    );
  }

  /** Another hook holds the agent: its turn was not ended by what ran before. */
  held(at: number): void {
    this.#stops = this.#stops.filter((stop) => stop.at > at || this.#place(stop) === 'ahead');
  }

  /** The hook of a turn that ended then, if it was heard. One that ran later is that of a later turn. */
  ownAt(at: number): HeardStop | null {
    return (
      this.#stops.findLast((stop) => this.#place(stop) === 'open' && (this.#isNamed(stop) || stop.at <= at)) ?? null
    );
  }

  /** The turn is over by its hook's word alone, or because nothing more came of it. */
  overByHook(): void {
    const own = this.own;
    this.#overAt = own?.at ?? this.#reachedAt;
    this.#openedAt = null;
    this.#stops = this.#stops.filter((stop) => stop !== own && this.#place(stop) !== 'before');
  }

  /**
   * A line says that the turn is over.
   * @param said by the turn last
   * @param hasHook whether a hook runs at such an end
   */
  overByLine(at: number, said: readonly string[], hasHook: boolean): void {
    const own = this.ownAt(at);
    // its own may be later than its end, whatever the clocks say, and those before it are of turns before
    const bySaid = own === null ? this.#stops.findIndex((one) => !this.#isSure(one) && isSaidBy(said, one.text)) : -1;
    const [left, isNamed] = [this.#stops.slice(bySaid + 1), (stop: HeardStop) => this.#isNamed(stop)];
    this.#stops = left.filter((stop) => (isNamed(stop) ? this.#place(stop) !== 'open' : stop.at > at));
    if (own !== null || bySaid >= 0) this.#unheard = [];
    else if (hasHook) this.#unheard = [...this.#unheard.slice(-(MAX_STOPS - 1)), said];
    this.#overAt = at;
    this.#openedAt = null;
  }

  drop(stop: HeardStop): void {
    this.#stops = this.#stops.filter((one) => one !== stop);
  }

  /** The session begins anew: what ran before ends nothing. */
  clearBefore(at: number): void {
    this.#stops = this.#stops.filter((stop) => stop.at >= at);
  }

  #begins(promptId: string | null): void {
    this.#past = [...this.#past, ...this.#prompts].slice(-MAX_PAST);
    this.#prompts = promptId === null ? [] : [promptId];
    if (promptId !== null) this.#namesPrompts = true;
  }

  #knows(promptId: string): boolean {
    return this.#prompts.includes(promptId) || this.#past.includes(promptId);
  }

  /** Whether a prompt that was heard of is the one whose line was made then. */
  #isPromptOf(madeAt: number | null, at: number | undefined): boolean {
    return madeAt !== null && at !== undefined && at >= madeAt && at <= madeAt + PROMPT_HOOK_MS;
  }

  /** A prompt was heard of that ran before it, and is to come. */
  #isBehindPrompt(at: number): boolean {
    return this.#toCome.some((prompt) => prompt < at);
  }

  #isNamed({ promptId }: HookMoment): boolean {
    return promptId !== null && this.#namesPrompts;
  }

  #isSure(stop: HookMoment): boolean {
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
   * A turn that is over waits for its hook. What such a one said last is told again; one that says nothing is held to
   * be its, where the open turn has not come to its end: that ends by its own words too.
   */
  #isOfUnheard({ text }: Stop, saidLastWord: boolean): boolean {
    const isMute = text === null && this.#openedAt !== null && !saidLastWord;
    const late = isMute ? this.#unheard.length - 1 : this.#unheard.findIndex((said) => isSaidBy(said, text));
    if (late < 0) return false;
    // the hooks of turns before it will not come any more
    this.#unheard = this.#unheard.slice(late + 1);
    return true;
  }
}

/** A hook that calls once more for the same turn may know less. */
function isAgain(one: HeardStop, stop: Stop): boolean {
  if (one.promptId !== stop.promptId || one.isClocked !== stop.isClocked) return false;
  if (stop.isClocked) return one.at === stop.at;
  return one.promptedAt === null && (stop.text === null || one.text === null || stop.text === one.text);
}
