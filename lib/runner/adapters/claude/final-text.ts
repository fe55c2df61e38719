import { type Fields, textOf } from '@interlude/protocol/fields';
import { lineText } from './transcript-line';

/** A turn closed by its stop hook; some of its lines may still arrive. */
export interface ClosedTurn {
  /** Time of the hook. */
  at: number;
  /** Text written in place of missing lines; null or empty if none. */
  text: string | null;
  /** Lines received since that match the beginning of the text. */
  taken: readonly Fields[];
}

/**
 * Tracks the final text of a turn, which a stop hook delivers before the transcript does (up to 3 s measured). Both
 * carry the same text except for white space at its ends and between blocks.
 */
export class FinalText {
  /** Texts since the agent's last input. */
  #texts: readonly string[] = [];
  #closed: ClosedTurn | null = null;

  get texts(): readonly string[] {
    return this.#texts;
  }

  get closed(): ClosedTurn | null {
    return this.#closed;
  }

  /** Restores the state of an earlier reader of this transcript. */
  restore(closed: ClosedTurn | null): void {
    this.#closed = closed;
  }

  /** Returns the part of a hook's text that no line contains; null if nothing is missing. */
  missingOf(text: string | null | undefined): string | null {
    return text === null || text === undefined || comparisonKey(text) === '' ? null : missingText(text, this.#texts);
  }

  /** Forgets the texts, because new input reached the agent and later texts follow it. */
  reset(): void {
    this.#texts = [];
  }

  /** Notes that a hook blocked the stop, so the text so far was not final. */
  blocked(): void {
    this.#texts = [];
    if (this.#closed !== null) this.#closed = { ...this.#closed, text: null, taken: [] };
  }

  /** True if a line made at `at` precedes the hook that ended the turn. */
  isBeforeEnd(at: number): boolean {
    return this.#closed !== null && at < this.#closed.at;
  }

  /**
   * Handles a hook that blocked an earlier stop of the closed turn: the lines so far precede the final text. If these
   * lines contain the whole final text, the agent repeated the text or the hook arrived late.
   *
   * @returns lines that turn out to be unwritten
   */
  blockedEarlier(): readonly Fields[] {
    if (this.#closed === null) return [];
    const { text, taken } = this.#closed;
    const isRepeated = textAfter(text ?? '', comparisonKey(taken.map(lineText).join(''))) === '';
    this.#closed = { ...this.#closed, text: isRepeated ? null : text, taken: [] };
    return isRepeated ? [] : taken;
  }

  append(text: string): void {
    const key = comparisonKey(text);
    if (key !== '') this.#texts = [...this.#texts, key];
  }

  /**
   * Opens a turn. Lines with an older timestamp still belong to the previous turn (measured with a busy CLI). Keeps the
   * texts, because one may have opened the turn.
   */
  opened(at: number): void {
    if (this.#closed !== null && at <= this.#closed.at) this.#closed = { ...this.#closed, at: at - 1 };
  }

  /** Closes a turn whose last lines are missing. @param text written in their place */
  close(at: number, text: string | null): void {
    this.#closed = { at, text, taken: [] };
  }

  /** True if a line arriving now belongs to the closed turn. */
  isLate(line: Fields, isOpen: boolean): boolean {
    if (this.#closed === null) return false;
    const at = Date.parse(textOf(line.timestamp) ?? '');
    if (Number.isFinite(at)) return at <= this.#closed.at;
    return !isOpen && textAfter(this.#closed.text ?? '', comparisonKey(lineText(line))) !== null;
  }

  /**
   * Handles a late line of a closed turn. The last lines repeat the text written in their place; later lines may show
   * that an earlier line had the same words by coincidence.
   *
   * @param isLast true if the line can be among the last
   * @returns lines that turn out to be unwritten
   */
  late(line: Fields, isLast: boolean): readonly Fields[] {
    if (this.#closed === null || !this.#closed.text || (isLast && comparisonKey(lineText(line)) === '')) return [line];
    const { text, taken } = this.#closed;
    const { type, uuid, message } = line;
    const lines = [...taken, { type, uuid, message }];
    let first = isLast ? 0 : lines.length;
    while (first < lines.length && textAfter(text, comparisonKey(lines.slice(first).map(lineText).join(''))) === null)
      first += 1;
    this.#closed = { ...this.#closed, taken: lines.slice(first) };
    return lines.slice(0, first);
  }
}

/** Normalizes a text for comparison: hooks and transcripts differ in white space and lone surrogates. */
export function comparisonKey(text: string): string {
  return text.replace(OMITTED, '');
}

const OMITTED = /[\s\ufffd]+|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Returns the part of a text that no block contains; null if none. A hook may carry the last block or all of them. */
function missingText(text: string, blocks: readonly string[]): string | null {
  const key = comparisonKey(text);
  let [covered, rest] = ['', text];
  for (const block of [...blocks].reverse()) {
    if (block.endsWith(key)) return null;
    if (covered.length > key.length) continue;
    covered = block + covered;
    rest = textAfter(text, covered) ?? rest;
  }
  return rest === '' ? null : rest;
}

/** True if the blocks end with a hook's text. */
export function containsText(blocks: readonly string[], text: string | null): boolean {
  return text !== null && comparisonKey(text) !== '' && missingText(text, blocks) === null;
}

/**
 * Returns what follows a prefix, ignoring white space.
 * @param key comparison key of the prefix, which must cover whole lines
 * @returns '' if nothing follows; null if the prefix does not match
 */
function textAfter(text: string, key: string): string | null {
  if (key === '' || !comparisonKey(text).startsWith(key)) return null;
  let index = 0;
  for (let left = key.length; left > 0; ) {
    const character = String.fromCodePoint(text.codePointAt(index) as number);
    if (comparisonKey(character) !== '') left -= character.length;
    index += character.length;
  }
  const rest = text.slice(index);
  return rest.trim() === '' ? '' : /^[^\S\n]*\n/.test(rest) ? rest.trimStart() : null;
}
