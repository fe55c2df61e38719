import { ansiPieces } from '@/components/ui/ansi';
import { countLines } from '@/components/ui/count-lines';

/** A stretch of a message as it is shown. */
export interface MessagePiece {
  text: string;
  /** `ansi-…` class names, or null. */
  className: string | null;
  /** A control character or an escape: a sign stands for it. */
  isControl: boolean;
  isHit: boolean;
}

/** What a page must not be given as it is: control characters, marks that turn text around, halves of a character. */
export const UNSAFE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this is about
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
/** A browser lays out no ten thousand elements without a pause: about so many of a line that is unfolded, */
export const ELEMENTS_UNFOLDED = 3_000;
/** and of one among a hundred others. */
export const ELEMENTS_FOLDED = 40;
/** What a sign that stands for a control is made of. */
const ELEMENTS_OF_SIGN = 3;
const isUnsafe = new RegExp(UNSAFE.source);

/**
 * A log message as text in pieces: its colours applied, every other control shown as a sign (`␛`, `␀`, `⟨202E⟩`), and
 * what was searched for marked.
 *
 * @param hits places in the message, `[start, end)`, ascending and apart
 * @param mostElements what follows so many is one text: without colours and marks
 */
export function messagePieces(
  message: string,
  hits: readonly (readonly [number, number])[] = [],
  mostElements = ELEMENTS_UNFOLDED,
): MessagePiece[] {
  const pieces: MessagePiece[] = [];
  /** The first of them that does not end before what comes next. */
  let hit = 0;
  let elements = 0;
  const addSigns = (text: string) => {
    pieces.push({ text, className: null, isControl: true, isHit: false });
    elements += ELEMENTS_OF_SIGN;
  };
  const add = (text: string, className: string | null, isHit: boolean) => {
    if (text === '') return;
    if (elements >= mostElements) return addPlain(pieces, text);
    pieces.push({ text, className, isControl: false, isHit });
    elements += 1;
  };
  const addText = (text: string, from: number, className: string | null) => {
    while ((hits[hit]?.[1] ?? Number.POSITIVE_INFINITY) <= from) hit += 1;
    let at = 0;
    for (let next = hit; next < hits.length && elements < mostElements; next++) {
      const [start, end] = hits[next] as [number, number];
      if (start >= from + text.length) break;
      const [begin, stop] = [Math.max(0, start - from), Math.min(text.length, end - from)];
      add(text.slice(at, begin), className, false);
      add(text.slice(begin, stop), className, true);
      at = stop;
    }
    add(text.slice(at), className, false);
  };
  if (!isUnsafe.test(message)) {
    addText(message, 0, null);
    return pieces;
  }
  for (const { from, to, className, isEscape } of ansiPieces(message)) {
    const raw = message.slice(from, to);
    if (elements >= mostElements) {
      addPlain(pieces, raw.replace(UNSAFE, signOf));
      continue;
    }
    if (isEscape) {
      addSigns(raw.replace(UNSAFE, signOf));
      continue;
    }
    let at = 0;
    for (const match of raw.matchAll(UNSAFE)) {
      if (elements >= mostElements) break;
      addText(raw.slice(at, match.index), from + at, className);
      at = match.index + match[0].length;
      // the end of a line as Windows writes it
      if (match[0] === '\r' && (raw[at] === '\n' || from + at === message.length)) continue;
      addSigns(signOf(match[0]));
    }
    if (elements >= mostElements) addPlain(pieces, raw.slice(at).replace(UNSAFE, signOf));
    else addText(raw.slice(at), from + at, className);
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

/** A line that is not unfolded shows this much. */
const MOST_LINES = 12;
const MOST_CHARACTERS = { cut: 1_000, wrapped: 4_000 };
/** Of characters that a sign stands for. A hundred lines that are cut may be laid out at once, or fifty that wrap. */
const MOST_CONTROLS = { cut: 16, wrapped: 80 };
/**
 * Of stretches outside of ASCII: they mostly come from another font, and each change of it costs as much as a hundred
 * signs.
 */
const NOT_ASCII = /[^\0-\x7f]+/g;
const MOST_STRETCHES = { cut: 30, wrapped: 120 };

interface ShownMessage {
  text: string;
  /** What is not shown, in words; null if it is all. */
  rest: string | null;
}

/** The beginning of a long message: enough to know it by. */
export function shownMessage(message: string, wraps: boolean): ShownMessage {
  const width = wraps ? 'wrapped' : 'cut';
  const beginning = message.slice(0, MOST_CHARACTERS[width]);
  const most = Math.min(
    placeOf(UNSAFE, MOST_CONTROLS[width], beginning),
    placeOf(NOT_ASCII, MOST_STRETCHES[width], beginning),
  );
  let end = 0;
  for (let line = 0; line < MOST_LINES; line++) {
    const next = message.indexOf('\n', end);
    if (next === -1) {
      end = message.length;
      break;
    }
    end = next + 1;
  }
  const isCutInLine = end > most;
  // never between the two halves of a character
  const cut = isCutInLine ? most - (/[\ud800-\udbff]/.test(message.charAt(most - 1)) ? 1 : 0) : end;
  const text = message.slice(0, cut).trimEnd();
  const rest = message.slice(cut).trim();
  if (rest === '') return { text, rest: null };
  const lines = countLines(rest);
  return { text, rest: isCutInLine && lines === 1 ? `${rest.length} more characters` : `${lines} more lines` };
}

/** Where a text has had so many matches; its length where it has fewer. */
function placeOf(pattern: RegExp, count: number, text: string): number {
  let left = count;
  for (const { index } of text.matchAll(pattern)) if (--left <= 0) return index;
  return text.length;
}
