import { findEscapes } from '../ansi-escapes';
import { TEXT_LIMITS } from '../limits';
import { commandStart } from './command-secrets';
import { findKeys, KEY_BEGIN, KeyWatch, mergeSpans, ruleSecrets } from './find-secrets';
import { type Sequence, toOriginalSpan, withoutSequences } from './normalize-text';
import { BlockScan } from './secret-blocks';
import { PENDING, redactionMark, type SecretSpan, shiftedSpan } from './secret-values';

/** Characters of a very long line in one scan. Each scan decides the first half. */
const WINDOW = 4 * 1024;
/** The window used when a secret reaches the end of the smaller one. */
const LONG_WINDOW = 16 * 1024;
/** Extra characters for a private key's first line at the end of the window. */
const KEY_LINE_LENGTH = 128;
/** Decided characters kept as context: they may name the next value. */
const CONTEXT_LENGTH = 320;
/** Beyond this length, a pending secret shows nothing instead of `…`, so the shown text only grows. */
const MAX_MARKED_LENGTH = 64 * 1024;
/** The rest of a secret longer than the window. */
const SECRET_RUN = /^[A-Za-z0-9_.~+/=-]*/;
const UNDECIDED = '…';

export interface Redacted {
  text: string;
  /** Number of redacted secrets. */
  redacted: number;
}

const MIN_SECRET_TEXT = 3;

/**
 * Redacts a text.
 *
 * @param isOpen true if more text may follow: the start of a possible secret at the end is then hidden too
 */
export function redactedText(text: string, isOpen = isTruncated(text)): Redacted {
  if (text.length < MIN_SECRET_TEXT) return { text, redacted: 0 };
  return (prepared(text) ?? wholeText(text)).shown(isOpen);
}

const TRUNCATED_LENGTHS: ReadonlySet<number> = new Set(TEXT_LIMITS);

/** True if a text has the length of a truncated one. `truncateText` drops half of a surrogate pair. */
function isTruncated({ length }: string): boolean {
  return TRUNCATED_LENGTHS.has(length) || TRUNCATED_LENGTHS.has(length + 1);
}

/** Texts prepared by `prepareTexts`, oldest first. */
const PREPARED_TEXTS = new Map<string, RedactedText>();
/** Total text length in UTF-16 code units from which callers prepare a value first. */
export const LONG_TEXT = 32 * 1024;
/** Shorter texts are redacted in one step. */
const MIN_PREPARED = 256;
const CHUNK_LENGTH = 8 * 1024;
/** UTF-16 code units cached besides the newest text. */
const MAX_PREPARED_LENGTH = 2 * 1024 * 1024;
let preparedLength = 0;

function prepared(text: string): RedactedText | undefined {
  return text.length < MIN_PREPARED ? undefined : PREPARED_TEXTS.get(text);
}

function evictPrepared(text: string): void {
  if (PREPARED_TEXTS.delete(text)) preparedLength -= text.length;
}

/** Returns the text as a RedactedText that the caller may extend. */
export function wholeText(text: string): RedactedText {
  const known = prepared(text);
  // Its content no longer matches the key once the caller extends it.
  evictPrepared(text);
  if (known !== undefined) return known;
  const whole = new RedactedText();
  whole.add(text);
  return whole;
}

/** Redacts every long text in a value and caches the results, yielding in between. */
export async function prepareTexts(value: unknown, yieldIfDue: YieldIfDue): Promise<void> {
  if (typeof value === 'object' && value !== null) {
    for (const field of Object.values(value)) await prepareTexts(field, yieldIfDue);
  }
  if (typeof value !== 'string' || value.length < MIN_PREPARED || PREPARED_TEXTS.has(value)) return;
  const text = new RedactedText();
  for (let index = 0; index < value.length; index += CHUNK_LENGTH) {
    text.add(value.slice(index, index + CHUNK_LENGTH));
    const due = yieldIfDue();
    if (due !== null) await due;
  }
  text.shown(isTruncated(value));
  const due = yieldIfDue();
  if (due !== null) await due;
  // A concurrent call may have prepared it.
  evictPrepared(value);
  for (const oldest of PREPARED_TEXTS.keys()) {
    if (preparedLength <= MAX_PREPARED_LENGTH) break;
    evictPrepared(oldest);
  }
  PREPARED_TEXTS.set(value, text);
  preparedLength += value.length;
}

/** Yields to the event loop when a yield is due; null otherwise. */
export type YieldIfDue = () => Promise<void> | null;

/**
 * Redacts a text that arrives in pieces. `…` replaces the start of a possible secret at the end.
 *
 * Ordering: the result depends on the text alone, not on its division into pieces, so a live reader and a later one see
 * the same text.
 * Failure: never throws. Each piece takes time linear in its own length and that of its line.
 */
export class RedactedText {
  /** The redacted text that later pieces cannot change. */
  #done = '';
  /** The part of `#done` added since the last `more`. */
  #fresh = '';
  /** The undecided text shown by the last `more`. */
  #open = '';
  #redacted = 0;
  /** The end of the decided text, unredacted: context for the next scan. */
  #behind = '';
  /** The undecided text, unredacted. */
  #tail = '';
  /** True if a secret continues from the decided text into the tail. */
  #isInside = false;
  #key: KeyWatch | null = null;
  /** Result of the last `shown`, until the next piece. */
  #last: { isOpen: boolean; shown: Redacted } | null = null;
  /** Scan state at the end of the decided text. */
  #blocks = new BlockScan();

  add(piece: string): void {
    this.#last = null;
    this.#tail += piece;
    const decides = piece.includes('\n') || this.#tail.length >= WINDOW + KEY_LINE_LENGTH || this.#key !== null;
    if (decides || piece.includes('-')) while (this.#decide());
  }

  /** Adds a piece. @returns the text to append to what was shown; null if shown text changed, see `shown` */
  more(piece: string): string | null {
    this.#fresh = '';
    if (piece !== '') this.add(piece);
    const before = this.#open;
    this.#open = this.#undecidedText().text;
    const after = this.#fresh + this.#open;
    return after.startsWith(before) ? after.slice(before.length) : null;
  }

  /** @param isOpen false once the text is complete: then everything is decided */
  shown(isOpen = true): Redacted {
    if (this.#last?.isOpen !== isOpen) {
      const { text, redacted } = this.#undecidedText(isOpen);
      this.#last = { isOpen, shown: { text: this.#done + text, redacted: this.#redacted + redacted } };
    }
    return this.#last.shown;
  }

  #undecidedText(isOpen = true): Redacted {
    if (this.#tail === '') return { text: '', redacted: 0 };
    const key = this.#key === null ? -1 : this.#key.at;
    const open = key < 0 ? this.#tail : this.#tail.slice(0, key);
    const { text, redacted } = this.#without(open, key < 0 && isOpen, open.length);
    const marker = key < 0 ? '' : redactionMark('private-key');
    return { text: text + marker, redacted: redacted + (key < 0 ? 0 : 1) };
  }

  /** Decides the next part of the tail. @returns false if that needs more text */
  #decide(): boolean {
    const tail = this.#tail;
    if (this.#key !== null) {
      const end = this.#key.end(tail);
      if (end === null) return false;
      this.#key = null;
      return this.#decideUpTo(end);
    }
    const first = lineEnd(tail, 0);
    if (first > WINDOW) {
      const begin = keyIn(tail.slice(0, LONG_WINDOW + KEY_LINE_LENGTH));
      if (begin !== null && begin.index < WINDOW) return this.#watch(begin);
      if (tail.length < WINDOW + KEY_LINE_LENGTH) return false;
      if (this.#decideHalf(WINDOW)) return true;
      if (begin !== null && begin.index < Math.min(first, LONG_WINDOW)) return this.#watch(begin);
      if (first <= LONG_WINDOW) return this.#decideUpTo(first);
      return tail.length >= LONG_WINDOW + KEY_LINE_LENGTH && this.#decideHalf(LONG_WINDOW);
    }
    const begin = keyIn(tail);
    if (begin !== null && begin.index < first) return this.#watch(begin);
    let end = first;
    // Whole lines, up to a very long one or the start of a key.
    for (let next = lineEnd(tail, end); next <= end + WINDOW; next = lineEnd(tail, end)) {
      if (begin !== null && begin.index < next) break;
      end = next;
    }
    return this.#decideUpTo(end);
  }

  #watch({ 0: firstLine, index }: RegExpExecArray): boolean {
    this.#key = new KeyWatch(index, firstLine);
    return true;
  }

  #decideUpTo(end: number): boolean {
    const { text, redacted } = this.#without(this.#tail.slice(0, end), false, end);
    this.#done += text;
    this.#fresh += text;
    this.#redacted += redacted;
    this.#advance(end);
    return this.#tail !== '';
  }

  /**
   * Decides half of a window, or up to the end of a secret across the middle.
   *
   * @returns false if a secret reaches the end of the smaller window: the larger one may contain its end
   */
  #decideHalf(size: number): boolean {
    const open = this.#tail.slice(0, size);
    const behind = this.#behind.length;
    const across = this.#spans(open, true).find(
      ({ start, end }) => start - behind < size / 2 && end - behind > size / 2,
    );
    const half = isInsidePair(open, size / 2) ? size / 2 - 1 : size / 2;
    const end = across === undefined ? half : across.end - behind;
    if (end === size && size < LONG_WINDOW) return false;
    const { text, redacted } = this.#without(open, true, end);
    this.#done += text;
    this.#fresh += text;
    this.#redacted += redacted;
    this.#advance(end);
    this.#isInside = end === size;
    return true;
  }

  #advance(end: number): void {
    this.#blocks.scan(visibleText(this.#tail.slice(0, end)));
    const before = this.#behind + this.#tail.slice(0, end);
    this.#behind = before.slice(Math.max(0, Math.min(before.length - CONTEXT_LENGTH, commandStart(before))));
    this.#tail = this.#tail.slice(end);
    this.#isInside = false;
  }

  /** Spans relative to the start of `#behind`. */
  #spans(text: string, isOpen: boolean): SecretSpan[] {
    const behind = this.#behind.length;
    const spans = spansIn(this.#behind + text, (plain) => ruleSecrets(plain, isOpen));
    const blocks = spansIn(text, (plain) => this.#blocks.clone().scan(plain, isOpen));
    return mergeSpans([...spans, ...blocks.map((span) => shiftedSpan(span, behind))]);
  }

  #without(text: string, isOpen: boolean, upTo: number): Redacted {
    const behind = this.#behind.length;
    const parts: string[] = [];
    let at = this.#isInside ? (SECRET_RUN.exec(text)?.[0].length ?? 0) : 0;
    let redacted = 0;
    for (const span of this.#spans(text, isOpen)) {
      const start = span.start - behind;
      if (span.end - behind <= at) continue;
      if (start >= upTo) break;
      const isBegun = span.kind === PENDING;
      parts.push(text.slice(at, Math.max(at, start)), isBegun ? this.#undecided() : redactionMark(span.kind));
      if (!isBegun) redacted += 1;
      at = isBegun ? text.length : span.end - behind;
    }
    parts.push(text.slice(at, upTo));
    return { text: parts.join(''), redacted };
  }

  #undecided(): string {
    return this.#done.length > MAX_MARKED_LENGTH ? '' : UNDECIDED;
  }
}

function keyIn(text: string): RegExpExecArray | null {
  return text.includes('PRIVATE KEY') ? new RegExp(KEY_BEGIN.source).exec(text) : null;
}

/** The index after the next line break; infinite without one. */
function lineEnd(text: string, from: number): number {
  const index = text.indexOf('\n', from);
  return index < 0 ? Number.POSITIVE_INFINITY : index + 1;
}

function isInsidePair(text: string, at: number): boolean {
  return /[\ud800-\udbff]/.test(text.charAt(at - 1));
}

/** A piece of command output with its context. */
interface OutputWindow {
  /** Output before the piece, where a secret may start. */
  behind: string;
  piece: string;
  /** Output after the piece, as far as known. */
  ahead: string;
}

interface SecretFinder {
  find(text: string): SecretSpan[];
}

/** Longest secret in UTF-16 code units, except private keys. */
const REACH = 16 * 1024;

/** Redacts a piece of output. Keeps everything else, including escape sequences, which may interrupt a secret. */
export function redactOutput(
  redactor: SecretFinder,
  { behind, piece, ahead }: OutputWindow,
): { text: string; redacted: number } {
  const text = behind + piece + ahead;
  const from = Math.max(0, behind.length - REACH);
  const found = [
    ...spansIn(text.slice(from), (plain) => redactor.find(plain)).map((span) => shiftedSpan(span, from)),
    ...(from > 0 && text.includes('PRIVATE KEY') ? spansIn(text, findKeys) : []),
  ];
  const end = behind.length + piece.length;
  const parts: string[] = [];
  let at = behind.length;
  let redacted = 0;
  for (const span of mergeSpans(found)) {
    if (span.end <= at) continue;
    if (span.start >= end) break;
    parts.push(text.slice(at, Math.max(at, span.start)), redactionMark(span.kind));
    // The piece in which a secret starts counts it.
    if (span.start >= behind.length) redacted += 1;
    at = Math.min(end, span.end);
  }
  parts.push(text.slice(at, end));
  // Terminals ignore NUL, and UTF-16 output contains one per ASCII character.
  return { text: parts.join('').replaceAll('\u0000', ''), redacted };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: controls are what this is about
const INVISIBLE = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\p{Default_Ignorable_Code_Point}\p{Bidi_Control}]/u;
const SEQUENCES = new RegExp(String.raw`(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|${INVISIBLE.source}`, 'gu');
const CONTROLS = new RegExp(INVISIBLE.source, 'gu');

/** Removes escape sequences and invisible characters. */
export function visibleText(text: string): string {
  return text.replace(SEQUENCES, '');
}

/** Finds secrets both with the text inside escape sequences (such as window titles) and as a terminal shows it. */
function spansIn(text: string, find: (plain: string) => SecretSpan[]): SecretSpan[] {
  if (!INVISIBLE.test(text)) return find(text);
  return [text.matchAll(SEQUENCES), invisibleParts(text)].flatMap((parts) => {
    const source = withoutSequences(text, parts);
    return find(source.text).map((span) => toOriginalSpan(span, source, text));
  });
}

/** The parts of a text that a terminal does not show. An unterminated sequence ends with its line. */
function* invisibleParts(text: string): Generator<Sequence> {
  for (let at = 0; at <= text.length; ) {
    const newline = text.indexOf('\n', at);
    const end = newline < 0 ? text.length : newline;
    const line = text.slice(at, end);
    let from = 0;
    for (const sequence of [...findEscapes(line), { from: line.length, to: line.length }]) {
      for (const { 0: control, index } of line.slice(from, sequence.from).matchAll(CONTROLS))
        yield { 0: control, index: at + from + index };
      if (sequence.to > sequence.from) yield { 0: line.slice(sequence.from, sequence.to), index: at + sequence.from };
      from = sequence.to;
    }
    if (newline < 0) return;
    at = end + 1;
  }
}
