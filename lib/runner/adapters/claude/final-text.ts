import { type Fields, textOf } from '@interlude/protocol/fields';
import { lineText } from './transcript-line';

/** A turn that a stop hook ended, while some of its lines may still come. */
export interface ClosedTurn {
  /** When the hook ran. */
  at: number;
  /** What was told in place of lines that had not come; null or empty if nothing was. */
  text: string | null;
  /** Lines that have come since and say the beginning of that text, or all of it. */
  taken: readonly Fields[];
}

/**
 * The last words of turns, which a stop hook brings before the transcript has them (seen: 3 s before). The hook's payload
 * and the transcript's lines have the same text, except for white space at its ends and between its blocks.
 */
export class FinalText {
  /** What the agent has said since it was last given something. */
  #said: readonly string[] = [];
  #closed: ClosedTurn | null = null;

  get said(): readonly string[] {
    return this.#said;
  }

  get closed(): ClosedTurn | null {
    return this.#closed;
  }

  /** As another reader of the same transcript left it. */
  recall(closed: ClosedTurn | null): void {
    this.#closed = closed;
  }

  /** The part of a hook's text that no line has said; null if there is nothing to wait for. */
  missingOf(text: string | null | undefined): string | null {
    return text === null || text === undefined || comparisonKey(text) === '' ? null : missingText(text, this.#said);
  }

  /** The agent was given something: what it says from now on is said after that. */
  given(): void {
    this.#said = [];
  }

  /** A hook holds the agent: what it had said by then were not its last words. */
  held(): void {
    this.#said = [];
    if (this.#closed !== null) this.#closed = { ...this.#closed, text: null, taken: [] };
  }

  /** Whether a line that was made then came before the hook that ended the turn. */
  isBeforeEnd(at: number): boolean {
    return this.#closed !== null && at < this.#closed.at;
  }

  /**
   * A hook held the agent before the one that ended the turn: the lines so far came before the latter's text, which is
   * still to come. If they have all of that text, it was said before as well, or the hook was heard late.
   *
   * @returns the lines that now turn out not to have been told
   */
  heldBefore(): readonly Fields[] {
    if (this.#closed === null) return [];
    const { text, taken } = this.#closed;
    const isAllSaid = textAfter(text ?? '', comparisonKey(taken.map(lineText).join(''))) === '';
    this.#closed = { ...this.#closed, text: isAllSaid ? null : text, taken: [] };
    return isAllSaid ? [] : taken;
  }

  says(text: string): void {
    const key = comparisonKey(text);
    if (key !== '') this.#said = [...this.#said, key];
  }

  /**
   * A turn opens. Lines after its first one that were made before it belong to the last turn (seen when the CLI was
   * busy). What the agent has said is kept: it may be what opened the turn.
   */
  opened(at: number): void {
    if (this.#closed !== null && at <= this.#closed.at) this.#closed = { ...this.#closed, at: at - 1 };
  }

  /** A turn is over while some of its lines are still to come. @param text what was told in their place */
  leaves(at: number, text: string | null): void {
    this.#closed = { at, text, taken: [] };
  }

  /** Whether a line of the agent that comes now belongs to the closed turn. */
  isLate(line: Fields, isOpen: boolean): boolean {
    if (this.#closed === null) return false;
    const at = Date.parse(textOf(line.timestamp) ?? '');
    if (Number.isFinite(at)) return at <= this.#closed.at;
    return !isOpen && textAfter(this.#closed.text ?? '', comparisonKey(lineText(line))) !== null;
  }

  /**
   * A line of a turn that is over. The last ones say what was told in their place. Which ones those are may become clear
   * only from what follows, because the same words may have been said before.
   *
   * @param isLast whether it can be among the last
   * @returns the lines that now turn out not to have been told
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

/**
 * Texts are compared without white space and without half surrogate pairs, in which the hook's text and the transcript's
 * lines differ.
 */
export function comparisonKey(text: string): string {
  return text.replace(OMITTED, '');
}

const OMITTED = /[\s\ufffd]+|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** The part of a text that no block has said; null for nothing. The hook may have the last of several blocks, or all. */
function missingText(text: string, blocks: readonly string[]): string | null {
  const key = comparisonKey(text);
  let [said, rest] = ['', text];
  for (const block of [...blocks].reverse()) {
    if (block.endsWith(key)) return null;
    if (said.length > key.length) continue;
    said = block + said;
    rest = textAfter(text, said) ?? rest;
  }
  return rest === '' ? null : rest;
}

/** Whether a turn whose last blocks are these has said a hook's text. */
export function containsText(blocks: readonly string[], text: string | null): boolean {
  return text !== null && comparisonKey(text) !== '' && missingText(text, blocks) === null;
}

/**
 * What follows the beginning of a text, except for white space.
 * @param key the key of the beginning: whole lines of the text, or all of it
 * @returns empty if the beginning is all of it; null if the text begins with something else
 */
function textAfter(text: string, key: string): string | null {
  if (key === '' || !comparisonKey(text).startsWith(key)) return null;
  let at = 0;
  for (let left = key.length; left > 0; ) {
    const character = String.fromCodePoint(text.codePointAt(at) as number);
    if (comparisonKey(character) !== '') left -= character.length;
    at += character.length;
  }
  const rest = text.slice(at);
  return rest.trim() === '' ? '' : /^[^\S\n]*\n/.test(rest) ? rest.trimStart() : null;
}
