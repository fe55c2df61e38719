import { findEscapes } from '../ansi-escapes';
import { TEXT_LIMITS } from '../limits';
import { commandStart } from './command-secrets';
import { findKeys, KEY_BEGIN, KeyWatch, mergeSpans, ruleSecrets } from './find-secrets';
import { type Sequence, toOriginalSpan, withoutSequences } from './normalize-text';
import { BlockScan } from './secret-blocks';
import { PENDING, redactionMark, type SecretSpan, shiftedSpan } from './secret-values';

/** Of a very long line, this much is looked at at once, and half of it is then decided. */
const WINDOW = 4 * 1024;
/** The same where a secret reaches the end of the smaller window. */
const LONG_WINDOW = 16 * 1024;
/** The first line of a private key may begin at the end of the window. */
const KEY_LINE_LENGTH = 128;
/** What came before counts where it gives a name to what comes. */
const CONTEXT_LENGTH = 320;
/** In a longer text, what may be a secret is left out until it is decided, so that what is shown only grows. */
const MAX_MARKED_LENGTH = 64 * 1024;
/** What goes on with a secret that is longer than the window. */
const SECRET_RUN = /^[A-Za-z0-9_.~+/=-]*/;
const UNDECIDED = '…';

export interface Redacted {
  text: string;
  /** How many secrets were taken out. */
  redacted: number;
}

const MIN_SECRET_TEXT = 3;

/**
 * A text without its secrets.
 *
 * @param mayGoOn whether more of the text may exist: then what may be the beginning of a secret at its end is hidden, too
 */
export function redactedText(text: string, mayGoOn = isTruncated(text)): Redacted {
  if (text.length < MIN_SECRET_TEXT) return { text, redacted: 0 };
  return (prepared(text) ?? wholeText(text)).shown(mayGoOn);
}

const TRUNCATED_LENGTHS: ReadonlySet<number> = new Set(TEXT_LIMITS);

/** True if a text is as long as a truncated one: `truncateText` leaves out half a surrogate pair. */
function isTruncated({ length }: string): boolean {
  return TRUNCATED_LENGTHS.has(length) || TRUNCATED_LENGTHS.has(length + 1);
}

/** Texts that were redacted in turns, the oldest first. */
const PREPARED_TEXTS = new Map<string, RedactedText>();
/** From this length on a value is redacted in turns: that of a text, or of all its texts. */
export const LONG_TEXT = 32 * 1024;
/** Shorter texts take no turn of their own. */
const MIN_PREPARED = 256;
const CHUNK_LENGTH = 8 * 1024;
/** In UTF-16 code units, besides the newest text. */
const MAX_PREPARED_LENGTH = 2 * 1024 * 1024;
let preparedLength = 0;

function prepared(text: string): RedactedText | undefined {
  return text.length < MIN_PREPARED ? undefined : PREPARED_TEXTS.get(text);
}

function evictPrepared(text: string): void {
  if (PREPARED_TEXTS.delete(text)) preparedLength -= text.length;
}

/** The text as a RedactedText that can grow. */
export function wholeText(text: string): RedactedText {
  const known = prepared(text);
  // the caller may append to it
  evictPrepared(text);
  if (known !== undefined) return known;
  const whole = new RedactedText();
  whole.add(text);
  return whole;
}

/**
 * Redacts every longer text in a value and caches the result, yielding in between.
 */
export async function prepareTexts(value: unknown, rest: YieldIfDue): Promise<void> {
  if (typeof value === 'object' && value !== null) {
    for (const field of Object.values(value)) await prepareTexts(field, rest);
  }
  if (typeof value !== 'string' || value.length < MIN_PREPARED || PREPARED_TEXTS.has(value)) return;
  const text = new RedactedText();
  const takeTurn = async () => {
    const due = rest();
    if (due !== null) await due;
  };
  for (let at = 0; at < value.length; at += CHUNK_LENGTH) {
    text.add(value.slice(at, at + CHUNK_LENGTH));
    await takeTurn();
  }
  text.shown(isTruncated(value));
  await takeTurn();
  // somebody else may have prepared it meanwhile
  evictPrepared(value);
  for (const oldest of PREPARED_TEXTS.keys()) {
    if (preparedLength <= MAX_PREPARED_LENGTH) break;
    evictPrepared(oldest);
  }
  PREPARED_TEXTS.set(value, text);
  preparedLength += value.length;
}

/** Gives others their turns, when it is time to. */
export type YieldIfDue = () => Promise<void> | null;

/**
 * A text that comes in pieces, without its secrets. What may be the beginning of one is held back: `…` stands for it.
 *
 * Ordering: what is shown depends on the text alone, and not on how it was cut into pieces. So whoever followed it, came
 * in the middle, or reads all of it later is shown the same.
 * Failure: nothing throws, and each piece takes time in proportion to its length and to that of its line.
 */
export class RedactedText {
  /** Decided, whatever comes. */
  #done = '';
  /** What of it was decided since the last `more`. */
  #fresh = '';
  /** What was shown behind it then. */
  #open = '';
  #redacted = 0;
  /** The end of what is decided, as it came. */
  #behind = '';
  #tail = '';
  /** The last of what is decided is a secret that goes on. */
  #isInside = false;
  #key: KeyWatch | null = null;
  /** Result of the last shown(), until the next piece. */
  #last: { mayGoOn: boolean; shown: Redacted } | null = null;
  /** The state of the blocks at the end of the decided text. */
  #blocks = new BlockScan();

  add(piece: string): void {
    this.#last = null;
    this.#tail += piece;
    const decides = piece.includes('\n') || this.#tail.length >= WINDOW + KEY_LINE_LENGTH || this.#key !== null;
    if (decides || piece.includes('-')) while (this.#decide());
  }

  /**
   * Adds a piece.
   *
   * @returns what is now shown behind what was; null where something else is shown in place of that
   */
  more(piece: string): string | null {
    this.#fresh = '';
    if (piece !== '') this.add(piece);
    const before = this.#open;
    this.#open = this.#undecidedText().text;
    const after = this.#fresh + this.#open;
    return after.startsWith(before) ? after.slice(before.length) : null;
  }

  /** @param mayGoOn false once nothing follows: then everything is decided */
  shown(mayGoOn = true): Redacted {
    if (this.#last?.mayGoOn !== mayGoOn) {
      const { text, redacted } = this.#undecidedText(mayGoOn);
      this.#last = { mayGoOn, shown: { text: this.#done + text, redacted: this.#redacted + redacted } };
    }
    return this.#last.shown;
  }

  #undecidedText(mayGoOn = true): Redacted {
    if (this.#tail === '') return { text: '', redacted: 0 };
    const key = this.#key === null ? -1 : this.#key.at;
    const open = key < 0 ? this.#tail : this.#tail.slice(0, key);
    const { text, redacted } = this.#without(open, key < 0 && mayGoOn, open.length);
    const marker = key < 0 ? '' : redactionMark('private-key');
    return { text: text + marker, redacted: redacted + (key < 0 ? 0 : 1) };
  }

  /** @returns false when only what comes can decide more */
  #decide(): boolean {
    const tail = this.#tail;
    if (this.#key !== null) {
      const end = this.#key.end(tail);
      if (end === null) return false;
      this.#key = null;
      return this.#take(end);
    }
    const first = lineEnd(tail, 0);
    if (first > WINDOW) {
      const begin = keyIn(tail.slice(0, LONG_WINDOW + KEY_LINE_LENGTH));
      if (begin !== null && begin.index < WINDOW) return this.#watch(begin);
      if (tail.length < WINDOW + KEY_LINE_LENGTH) return false;
      if (this.#takeHalf(WINDOW)) return true;
      if (begin !== null && begin.index < Math.min(first, LONG_WINDOW)) return this.#watch(begin);
      if (first <= LONG_WINDOW) return this.#take(first);
      return tail.length >= LONG_WINDOW + KEY_LINE_LENGTH && this.#takeHalf(LONG_WINDOW);
    }
    const begin = keyIn(tail);
    if (begin !== null && begin.index < first) return this.#watch(begin);
    let end = first;
    // whole lines, up to one that is very long or begins a key
    for (let next = lineEnd(tail, end); next <= end + WINDOW; next = lineEnd(tail, end)) {
      if (begin !== null && begin.index < next) break;
      end = next;
    }
    return this.#take(end);
  }

  #watch({ 0: sign, index }: RegExpExecArray): boolean {
    this.#key = new KeyWatch(index, sign);
    return true;
  }

  #take(end: number): boolean {
    const { text, redacted } = this.#without(this.#tail.slice(0, end), false, end);
    this.#done += text;
    this.#fresh += text;
    this.#redacted += redacted;
    this.#goOn(end);
    return this.#tail !== '';
  }

  /**
   * Decides half of a window, or up to the end of a secret that reaches beyond the half.
   *
   * @returns false if a secret reaches the end of the smaller window: the larger one may show where it ends
   */
  #takeHalf(size: number): boolean {
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
    this.#goOn(end);
    this.#isInside = end === size;
    return true;
  }

  #goOn(end: number): void {
    this.#blocks.scan(visibleText(this.#tail.slice(0, end)));
    const before = this.#behind + this.#tail.slice(0, end);
    this.#behind = before.slice(Math.max(0, Math.min(before.length - CONTEXT_LENGTH, commandStart(before))));
    this.#tail = this.#tail.slice(end);
    this.#isInside = false;
  }

  /** Counted from the beginning of `#behind`. */
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

/** Behind the line break; beyond any window if there is none. */
function lineEnd(text: string, from: number): number {
  const at = text.indexOf('\n', from);
  return at < 0 ? Number.POSITIVE_INFINITY : at + 1;
}

function isInsidePair(text: string, at: number): boolean {
  return /[\ud800-\udbff]/.test(text.charAt(at - 1));
}

/** A piece of what a command writes, and what stands around it. */
interface OutputWindow {
  /** What came before: a secret that begins there is known by its whole. */
  behind: string;
  piece: string;
  /** What has been written behind it. */
  ahead: string;
}

/** Whoever knows where the secrets of a text are. */
interface SecretFinder {
  find(text: string): SecretSpan[];
}

/** How far a secret may reach, private keys apart. */
const REACH = 16 * 1024;

/**
 * Takes the secrets out of a piece of output, and leaves everything else as it is: escape sequences too, which may stand
 * in the middle of a secret.
 */
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
    // One that began before was counted there.
    if (span.start >= behind.length) redacted += 1;
    at = Math.min(end, span.end);
  }
  parts.push(text.slice(at, end));
  // a terminal passes over it, and half of each character of a text in UTF-16 is one
  return { text: parts.join('').replaceAll('\u0000', ''), redacted };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: controls are what this is about
const INVISIBLE = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\p{Default_Ignorable_Code_Point}\p{Bidi_Control}]/u;
const SEQUENCES = new RegExp(String.raw`(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|${INVISIBLE.source}`, 'gu');
const CONTROLS = new RegExp(INVISIBLE.source, 'gu');

/** A text without whatever in it nobody sees. */
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
