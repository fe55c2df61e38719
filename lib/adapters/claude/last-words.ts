import { type Fields, fieldsOf, listOf, textOf } from './fields';

/** A turn that a stop hook ended, of which lines may still come. */
export interface ClosedTurn {
  /** When the hook ran. */
  at: number;
  /** What was told in the place of a line that had not come; null where nothing was. */
  text: string | null;
}

/**
 * The last words of a turn, which a stop hook brings before the transcript has them (seen: 3 s before). The hook's payload
 * and the transcript's line say the same text, but for blank space at its ends and between its blocks.
 *
 * A transcript is written in order: once the next turn's first line stands in it, nothing of this one can come any more.
 */
export class LastWords {
  /** What the agent has said since it was last given something. */
  readonly #said = new Set<string>();
  #expected: string | null = null;
  /** When the stop hook of the open turn ran. */
  #stoppedAt: number | null = null;
  #closed: ClosedTurn | null = null;

  get closed(): ClosedTurn | null {
    return this.#closed;
  }

  /** A text that was announced and has not been said; null where nothing is waited for. */
  get missing(): string | null {
    return this.#expected === null || this.#isSaid(this.#expected) ? null : this.#expected;
  }

  /** What is missing of a turn that ended then: a hook that ran later is that of a later turn. */
  missingAt(at: number): string | null {
    return this.#stoppedAt !== null && at >= this.#stoppedAt ? this.missing : null;
  }

  /** The stop hook ran. @param text what it says the agent said last */
  announced(text: string | null, at: number): void {
    this.#expected = text === null || keyOf(text) === '' ? null : text;
    this.#stoppedAt = at;
  }

  /** Another hook holds the agent: what it said was not its last. */
  held(): void {
    this.#expected = null;
    this.#stoppedAt = null;
    this.#said.clear();
  }

  /** The agent was given something: what it says from now on comes after it. */
  given(): void {
    this.#said.clear();
  }

  said(text: string): void {
    const key = keyOf(text);
    if (key !== '') this.#said.add(key);
  }

  /** A turn opens. A stop hook that ran before it is that of the turn before. */
  opened(at: number): void {
    if (this.missing === null || (this.#stoppedAt !== null && at > this.#stoppedAt)) this.held();
    this.#said.clear();
  }

  /**
   * The turn is over.
   * @param byHook nothing in the transcript said so, and more may come
   * @param text what was told in the place of a line
   */
  closes(now: number, byHook: boolean, text: string | null): void {
    if (byHook || text !== null) this.#closed = { at: this.#stoppedAt ?? now, text };
    if (text !== null) this.said(text);
    if (this.#stoppedAt !== null && now >= this.#stoppedAt) this.#stoppedAt = null;
  }

  /** As another reader of the same transcript left it. */
  recall(closed: ClosedTurn | null): void {
    this.#closed = closed;
  }

  /** Whether a line of the agent that comes now belongs to the turn that was closed. */
  isLate(line: Fields, isOpen: boolean): boolean {
    if (this.#closed === null) return false;
    const at = Date.parse(textOf(line.timestamp) ?? '');
    return Number.isFinite(at) ? at <= this.#closed.at : !isOpen && this.isTold(line);
  }

  /** Whether the line says what was told before it came. */
  isTold(line: Fields): boolean {
    const told = this.#closed?.text;
    if (told === null || told === undefined) return false;
    const key = keyOf(textIn(line));
    return key !== '' && key === keyOf(told);
  }

  /** The hook may have been given the last of several blocks, or all. */
  #isSaid(text: string): boolean {
    const key = keyOf(text);
    for (const said of this.#said) if (said.endsWith(key)) return true;
    return key === [...this.#said].join('');
  }
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
