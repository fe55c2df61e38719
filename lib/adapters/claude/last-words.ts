import { type Fields, fieldsOf, listOf, textOf } from './fields';

/** A turn that a stop hook ended, of which lines may still come. */
export interface ClosedTurn {
  /** When the hook ran. */
  at: number;
  /** What was told in the place of lines that have not come; null or empty where nothing was. */
  text: string | null;
}

/** A stop hook that ran and let the turn end. */
export interface HeardStop {
  /** Epoch milliseconds. */
  at: number;
  /** What the agent said last, by the hook's word; null where the hook did not say. */
  text: string | null;
  /** Why the turn died, where it did. */
  failure: string | null;
  /** When the next prompt was heard of: the agent goes on. */
  promptedAt: number | null;
  /** When the newest prompt before it was heard of, while no line has come up to that: the hook is that of a later turn. */
  behindPrompt: number | null;
}

/** A stop hook as it is heard. */
export type Stop = Pick<HeardStop, 'at' | 'text' | 'failure'>;

/** Most stop hooks that are ahead of their transcript, and most turns that are ahead of their stop hooks. */
const MAX_STOPS = 16;
/** A line that is read this long after it was made, by its clock: the clocks disagree, or nobody was there to read. */
const CLOCKS_AGREE_MS = 60_000;

/**
 * The last words of turns, which a stop hook brings before the transcript has them (seen: 3 s before). The hook's payload
 * and the transcript's line say the same text, but for blank space at its ends and between its blocks.
 *
 * Ordering: a transcript is written in order: once the next turn's first line stands in it, nothing of this one can come
 * any more. The hooks may be ahead of it by more than a turn, or behind; which turn a hook ended, its time tells, and
 * where that tells nothing, its text. Hooks come in the order of their turns.
 */
export class LastWords {
  /** What the agent has said since it was last given something. */
  #said: readonly string[] = [];
  /** Of turns that are open, or have not begun in the transcript. Oldest first. */
  #stops: readonly HeardStop[] = [];
  #closed: ClosedTurn | null = null;
  /** What was said last by turns that are over and whose hooks were not heard. Oldest first. */
  #unheard: readonly (readonly string[])[] = [];
  #prompt: number | null = null;

  get closed(): ClosedTurn | null {
    return this.#closed;
  }

  get stops(): readonly HeardStop[] {
    return this.#stops;
  }

  get unheard(): readonly (readonly string[])[] {
    return this.#unheard;
  }

  /** When the newest prompt was heard of, where no line has come up to it: a turn is to come. */
  get prompt(): number | null {
    return this.#prompt;
  }

  /** What the open turn's hook has told, and no line has said; null where nothing is waited for. */
  get missing(): string | null {
    return this.#missingOf(this.#stops[0]);
  }

  /** The same of a turn that ended then: a hook that ran later is that of a later turn. */
  missingAt(at: number): string | null {
    return this.#missingOf(this.#stops.findLast((stop) => stop.at <= at));
  }

  /** A stop hook ran. One that calls once more for the same turn may know less. */
  heard(stop: Stop): void {
    const late = this.#unheard.findIndex((said) => isSaidBy(said, stop.text));
    if (late >= 0) {
      // the hooks of turns before it will not come any more
      this.#unheard = this.#unheard.slice(late + 1);
      return;
    }
    const last = this.#stops.at(-1);
    const isAgain = last?.promptedAt === null && (stop.text === null || last.text === null || stop.text === last.text);
    if (last === undefined || !isAgain) {
      this.#stops = [...this.#stops.slice(-(MAX_STOPS - 1)), { ...stop, promptedAt: null, behindPrompt: this.#prompt }];
      return;
    }
    const both = { ...last, text: last.text ?? stop.text, failure: last.failure ?? stop.failure };
    this.#stops = [...this.#stops.slice(0, -1), both];
  }

  /** The next prompt was heard of. */
  prompted(at: number): void {
    this.#prompt = at;
    this.#stops = this.#stops.map((stop) => (stop.promptedAt === null ? { ...stop, promptedAt: at } : stop));
  }

  /** The main thread's transcript has come to this line. When it was made says more than when it was read. */
  reached(madeAt: number, readAt: number): void {
    const at = Math.abs(readAt - madeAt) < CLOCKS_AGREE_MS ? madeAt : readAt;
    const leftOf = (prompt: number | null) => (prompt !== null && prompt > at ? prompt : null);
    this.#prompt = leftOf(this.#prompt);
    this.#stops = this.#stops.map((stop) => ({ ...stop, behindPrompt: leftOf(stop.behindPrompt) }));
  }

  /** Another hook holds the agent: what it had said by then was not its last. */
  held(at: number): void {
    this.#stops = this.#stops.filter((stop) => stop.at > at);
    this.#said = [];
  }

  /** The agent was given something: what it says from now on comes after it. */
  given(): void {
    this.#said = [];
  }

  said(text: string): void {
    const key = keyOf(text);
    if (key !== '') this.#said = [...this.#said, key];
  }

  /**
   * A turn opens. A stop hook that ran before it is that of one before. What comes behind its first line and was made
   * before that is of the turn before: seen where the CLI was busy.
   */
  opened(at: number): void {
    if (this.#closed !== null && at <= this.#closed.at) this.#closed = { ...this.#closed, at: at - 1 };
    this.#stops = this.#stops.filter((stop) => stop.at >= at);
    this.#said = [];
  }

  /** The turn is over by its hook's word alone: nothing in the transcript says so, and more may come. */
  closesByHook(now: number, text: string | null): void {
    const [stop, ...later] = this.#stops;
    this.#closed = { at: stop?.at ?? now, text };
    this.#stops = later;
  }

  /**
   * A line says that the turn is over.
   * @param text what was told in the place of one that is missing
   * @param hasHook whether a hook runs at such an end
   */
  closes(at: number, text: string | null, hasHook: boolean): void {
    const stop = this.#stops.findLast((one) => one.at <= at);
    if (text !== null) this.#closed = { at: stop?.at ?? at, text };
    const said = this.#said;
    // its own may be later than its end, whatever the clocks say, and those before it are of turns before
    const own = stop === undefined ? this.#stops.findIndex((one) => isSaidBy(said, one.text)) : -1;
    this.#stops = this.#stops.slice(own + 1).filter((one) => one.at > at);
    if (stop !== undefined || own >= 0) this.#unheard = [];
    else if (hasHook && said.length > 0) this.#unheard = [...this.#unheard.slice(-(MAX_STOPS - 1)), said];
  }

  /** The oldest hook ended a turn that is over already, or of which no line came. */
  dropStop(): void {
    this.#stops = this.#stops.slice(1);
  }

  clear(): void {
    this.#stops = [];
  }

  #missingOf(stop: HeardStop | undefined): string | null {
    const text = stop?.text ?? null;
    return text === null || keyOf(text) === '' ? null : unsaidOf(text, this.#said);
  }

  /** As another reader of the same transcript left it. */
  recall(before: Pick<LastWords, 'closed' | 'stops' | 'unheard' | 'prompt'>): void {
    this.#closed = before.closed;
    this.#stops = before.stops;
    this.#unheard = before.unheard;
    this.#prompt = before.prompt;
  }

  /** Whether a line of the agent that comes now belongs to the turn that was closed. */
  isLate(line: Fields, isOpen: boolean): boolean {
    if (this.#closed === null) return false;
    const at = Date.parse(textOf(line.timestamp) ?? '');
    return Number.isFinite(at) ? at <= this.#closed.at : !isOpen && this.#restBehind(line) !== null;
  }

  /** Whether the line says what was told before it came, all of it or its next block: that is said with it. */
  takes(line: Fields): boolean {
    const rest = this.#restBehind(line);
    if (rest === null || this.#closed === null) return false;
    this.#closed = { ...this.#closed, text: rest };
    return true;
  }

  #restBehind(line: Fields): string | null {
    const told = this.#closed?.text;
    return told ? restBehind(told, keyOf(textIn(line))) : null;
  }
}

/** What no line has said of a text: the hook may have been given the last of several blocks, or all. */
function unsaidOf(text: string, blocks: readonly string[]): string | null {
  const key = keyOf(text);
  let [said, rest] = ['', text];
  for (const block of [...blocks].reverse()) {
    if (block.endsWith(key)) return null;
    if (said.length > key.length) continue;
    said = block + said;
    rest = restBehind(text, said) ?? rest;
  }
  return rest === '' ? null : rest;
}

/** A turn that said these blocks last has said what a hook told. */
function isSaidBy(blocks: readonly string[], text: string | null): boolean {
  return text !== null && keyOf(text) !== '' && unsaidOf(text, blocks) === null;
}

/** The text blocks of a transcript line. */
export function textIn(line: Fields): string {
  const { content } = fieldsOf(line.message);
  if (typeof content === 'string') return content;
  return listOf(content)
    .map((block) => textOf(fieldsOf(block).text) ?? '')
    .join('');
}

function keyOf(text: string): string {
  return text.replace(/\s+/g, '');
}

/**
 * What a text says behind its beginning, but for blank space.
 * @param key of the beginning: whole lines of the text, or all of it
 * @returns empty for all of it; null where the text begins with something else
 */
function restBehind(text: string, key: string): string | null {
  if (key === '' || !keyOf(text).startsWith(key)) return null;
  let at = 0;
  for (let left = key.length; left > 0; at += 1) if (!/\s/.test(text.charAt(at))) left -= 1;
  const rest = text.slice(at);
  return rest.trim() === '' ? '' : /^[^\S\n]*\n/.test(rest) ? rest.trimStart() : null;
}
