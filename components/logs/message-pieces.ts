import { ansiPieces } from '@/components/ui/ansi';
import { plural } from '@/components/ui/duration';
import { countLines } from '@/components/ui/format-size';

/** A part of a message as shown. */
export interface MessagePiece {
  text: string;
  /** `ansi-…` class names, or null. */
  className: string | null;
  /** A control character or escape, shown as a symbol. */
  isControl: boolean;
  isHit: boolean;
}

/** Characters that a page must not contain: controls, bidi marks, unpaired surrogates. */
const UNSAFE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: matches control characters
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
/** Maximum number of elements in an unfolded line. */
export const ELEMENTS_UNFOLDED = 3_000;
/** Maximum number of elements in a folded line. A page shows up to a hundred. */
export const ELEMENTS_FOLDED = 40;
const ELEMENTS_OF_SIGN = 3;
const isUnsafe = new RegExp(UNSAFE.source);

/**
 * A log message in pieces: colours applied, other controls shown as symbols (`␛`, `␀`, `⟨202E⟩`), hits marked.
 *
 * @param hits ranges `[start, end)`, ascending and disjoint
 * @param maxElements the rest becomes one plain piece
 */
export function messagePieces(
  message: string,
  hits: readonly (readonly [number, number])[] = [],
  maxElements = ELEMENTS_UNFOLDED,
): MessagePiece[] {
  const pieces: MessagePiece[] = [];
  /** Index of the first hit that may overlap the following text. */
  let hit = 0;
  let elements = 0;
  const addSigns = (text: string) => {
    pieces.push({ text, className: null, isControl: true, isHit: false });
    elements += ELEMENTS_OF_SIGN;
  };
  const add = (text: string, className: string | null, isHit: boolean) => {
    if (text === '') return;
    if (elements >= maxElements) return addPlain(pieces, text);
    pieces.push({ text, className, isControl: false, isHit });
    elements += 1;
  };
  const addText = (text: string, from: number, className: string | null) => {
    while ((hits[hit]?.[1] ?? Number.POSITIVE_INFINITY) <= from) hit += 1;
    let index = 0;
    for (let next = hit; next < hits.length && elements < maxElements; next++) {
      const [start, end] = hits[next] as [number, number];
      if (start >= from + text.length) break;
      const [begin, stop] = [Math.max(0, start - from), Math.min(text.length, end - from)];
      add(text.slice(index, begin), className, false);
      add(text.slice(begin, stop), className, true);
      index = stop;
    }
    add(text.slice(index), className, false);
  };
  if (!isUnsafe.test(message)) {
    addText(message, 0, null);
    return pieces;
  }
  for (const { from, to, className, isEscape } of ansiPieces(message)) {
    const raw = message.slice(from, to);
    if (elements >= maxElements) {
      addPlain(pieces, raw.replace(UNSAFE, signOf));
      continue;
    }
    if (isEscape) {
      addSigns(raw.replace(UNSAFE, signOf));
      continue;
    }
    let index = 0;
    for (const match of raw.matchAll(UNSAFE)) {
      if (elements >= maxElements) break;
      addText(raw.slice(index, match.index), from + index, className);
      index = match.index + match[0].length;
      // Skips the carriage return of a Windows line break.
      if (match[0] === '\r' && (raw[index] === '\n' || from + index === message.length)) continue;
      addSigns(signOf(match[0]));
    }
    if (elements >= maxElements) addPlain(pieces, raw.slice(index).replace(UNSAFE, signOf));
    else addText(raw.slice(index), from + index, className);
  }
  return pieces;
}

function addPlain(pieces: MessagePiece[], text: string): void {
  const last = pieces.at(-1);
  if (last !== undefined && last.className === null && !last.isControl && !last.isHit) last.text += text;
  else if (text !== '') pieces.push({ text, className: null, isControl: false, isHit: false });
}

function signOf(character: string): string {
  const code = character.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return '\u2421';
  return `\u27e8${code.toString(16).toUpperCase().padStart(2, '0')}\u27e9`;
}

/** Limits of a folded line. */
const MAX_LINES = 12;
const MAX_CHARACTERS = { cut: 1_000, wrapped: 4_000 };
/** Control characters are slow to lay out. A page shows up to a hundred cut lines, or fifty that wrap. */
const MAX_CONTROLS = { cut: 16, wrapped: 80 };
/** Runs outside of ASCII: each usually changes the font, which costs as much as a hundred characters. */
const NOT_ASCII = /[^\0-\x7f]+/g;
const MAX_STRETCHES = { cut: 30, wrapped: 120 };

interface MessagePreview {
  text: string;
  /** Describes the hidden rest; null if all is shown. */
  rest: string | null;
}

/** The beginning of a long message. */
export function previewOf(message: string, wraps: boolean): MessagePreview {
  const width = wraps ? 'wrapped' : 'cut';
  const beginning = message.slice(0, MAX_CHARACTERS[width]);
  const max = Math.min(
    placeOf(UNSAFE, MAX_CONTROLS[width], beginning),
    placeOf(NOT_ASCII, MAX_STRETCHES[width], beginning),
  );
  let end = 0;
  for (let line = 0; line < MAX_LINES; line++) {
    const next = message.indexOf('\n', end);
    if (next === -1) {
      end = message.length;
      break;
    }
    end = next + 1;
  }
  const isCutInLine = end > max;
  // Keeps surrogate pairs together.
  const cut = isCutInLine ? max - (/[\ud800-\udbff]/.test(message.charAt(max - 1)) ? 1 : 0) : end;
  const text = message.slice(0, cut).trimEnd();
  const rest = message.slice(cut).trim();
  if (rest === '') return { text, rest: null };
  const lines = countLines(rest);
  return {
    text,
    rest: isCutInLine && lines === 1 ? plural(rest.length, 'more character') : plural(lines, 'more line'),
  };
}

/** Index of the match number `count`; the text's length if there are fewer. */
function placeOf(pattern: RegExp, count: number, text: string): number {
  let left = count;
  for (const { index } of text.matchAll(pattern)) if (--left <= 0) return index;
  return text.length;
}
