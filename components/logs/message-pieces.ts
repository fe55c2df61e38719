import { ansiPieces } from '@/components/ui/ansi';

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
const UNSAFE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this is about
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
/** A browser lays out no ten thousand signs without a pause. */
const MOST_PIECES = 2_000;
const isUnsafe = new RegExp(UNSAFE.source);

/**
 * A log message as text in pieces: its colours applied, every other control shown as a sign (`␛`, `␀`, `⟨202E⟩`), and
 * what was searched for marked.
 *
 * @param hits places in the message, `[start, end)`, ascending and apart
 */
export function messagePieces(message: string, hits: readonly [number, number][] = []): MessagePiece[] {
  if (!isUnsafe.test(message)) return textPieces(message, 0, null, hits);
  const pieces: MessagePiece[] = [];
  /** The first of them that does not end before what comes next. */
  let hit = 0;
  const addText = (text: string, from: number, className: string | null) => {
    while ((hits[hit]?.[1] ?? Number.POSITIVE_INFINITY) <= from) hit += 1;
    for (const piece of textPieces(text, from, className, hits, hit)) pieces.push(piece);
  };
  for (const { from, to, className, isEscape } of ansiPieces(message)) {
    const raw = message.slice(from, to);
    if (pieces.length >= MOST_PIECES) {
      addPlain(pieces, raw.replace(UNSAFE, signOf));
      continue;
    }
    if (isEscape) {
      pieces.push(controlPiece(raw.replace(UNSAFE, signOf)));
      continue;
    }
    let at = 0;
    for (const match of raw.matchAll(UNSAFE)) {
      if (pieces.length >= MOST_PIECES) break;
      addText(raw.slice(at, match.index), from + at, className);
      at = match.index + match[0].length;
      // the end of a line as Windows writes it
      if (match[0] === '\r' && (raw[at] === '\n' || from + at === message.length)) continue;
      pieces.push(controlPiece(signOf(match[0])));
    }
    if (pieces.length >= MOST_PIECES) addPlain(pieces, raw.slice(at).replace(UNSAFE, signOf));
    else addText(raw.slice(at), from + at, className);
  }
  return pieces;
}

/** What follows so many pieces is one more: its signs stay, its colours go. */
function addPlain(pieces: MessagePiece[], text: string): void {
  const last = pieces.at(-1);
  if (last !== undefined && last.className === null && !last.isControl && !last.isHit) last.text += text;
  else if (text !== '') pieces.push({ text, className: null, isControl: false, isHit: false });
}

/** The message on one or more lines of text, with signs for its controls: for the clipboard and for screen readers. */
export function readableMessage(message: string): string {
  return messagePieces(message)
    .map(({ text }) => text)
    .join('');
}

function textPieces(
  text: string,
  from: number,
  className: string | null,
  hits: readonly [number, number][],
  firstHit = 0,
): MessagePiece[] {
  const pieces: MessagePiece[] = [];
  let at = 0;
  const push = (end: number, isHit: boolean) => {
    if (end > at) pieces.push({ text: text.slice(at, end), className, isControl: false, isHit });
    at = Math.max(at, end);
  };
  for (let next = firstHit; next < hits.length; next++) {
    const [start, end] = hits[next] as [number, number];
    if (start >= from + text.length) break;
    if (end <= from) continue;
    push(Math.max(0, start - from), false);
    push(Math.min(text.length, end - from), true);
  }
  push(text.length, false);
  return pieces;
}

function controlPiece(text: string): MessagePiece {
  return { text, className: null, isControl: true, isHit: false };
}

function signOf(character: string): string {
  const code = character.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return '\u2421';
  return `\u27e8${code.toString(16).toUpperCase().padStart(2, '0')}\u27e9`;
}
