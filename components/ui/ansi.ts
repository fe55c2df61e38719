import { findEscapes } from '@interlude/protocol/ansi-escapes';

/**
 * Terminal output as text with a few colours.
 *
 * Only SGR colours and attributes are interpreted. Every other escape (cursor, title, hyperlink, device query) and every
 * control character is dropped: the output of an agent's commands must not act on its reader.
 *
 * @see ECMA-48 §8.3.117 (SGR)
 */
export interface AnsiSpan {
  text: string;
  /** `ansi-…` class names; null for plain text. */
  className: string | null;
}

/** SGR state at a position in the output. */
export interface AnsiStyle {
  colour: string | null;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
}

export const PLAIN: AnsiStyle = { colour: null, bold: false, dim: false, italic: false, underline: false };
const COLOURS = ['grey', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', null] as const;

// biome-ignore lint/suspicious/noControlCharactersInRegex: matches controls
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;
// Direction marks can make one command look like another.
const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** A range of the output: text in one style, or an escape other than a colour. */
interface AnsiPiece {
  from: number;
  to: number;
  className: string | null;
  isEscape: boolean;
}

/**
 * Splits output at escapes and applies its colours. Other escapes stay in the output, to be shown as text: a log shows
 * what a program wrote rather than what a terminal would display.
 */
export function ansiPieces(output: string, begin: AnsiStyle = PLAIN): AnsiPiece[] {
  const pieces: AnsiPiece[] = [];
  let style = begin;
  let from = 0;
  const push = (to: number, isEscape: boolean) => {
    if (to > from) pieces.push({ from, to, className: classOf(style), isEscape });
    from = to;
  };
  for (const found of findEscapes(output)) {
    push(found.from, false);
    if (found.colour === null) {
      push(found.to, true);
    } else {
      style = applySgr(style, found.colour);
      from = found.to;
    }
  }
  push(output.length, false);
  return pieces;
}

/** @param maxSpans the rest becomes one plain span, because a page with a hundred thousand spans freezes */
export function parseAnsi(output: string, maxSpans = 1_000, begin: AnsiStyle = PLAIN): AnsiSpan[] {
  const spans: AnsiSpan[] = [];
  const settled = overwriteLines(output);
  for (const piece of ansiPieces(settled, begin)) {
    const text = piece.isEscape ? '' : readable(settled.slice(piece.from, piece.to));
    if (text === '') continue;
    const last = spans.at(-1);
    if (last?.className === piece.className) last.text += text;
    else if (spans.length < maxSpans) spans.push({ text, className: piece.className });
    else if (last?.className === null) last.text += text;
    else spans.push({ text, className: null });
  }
  return spans;
}

/** SGR state at the end of a line. */
export function styleAfter(line: string, begin: AnsiStyle): AnsiStyle {
  const last = line.lastIndexOf('\u001b[');
  if (last === -1 && !line.includes('\u009b')) return begin;
  // The common case: a reset at the end.
  if (/^(?:0?m)[^\u009b]*$/.test(line.slice(last + 2))) return PLAIN;
  let style = begin;
  for (const [, parameters = ''] of line.matchAll(SGR)) style = applySgr(style, parameters);
  return style;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: matches escapes
const SGR = /(?:\x1b\[|\x9b)([\d;:]*)m/g;

/**
 * The final content of a line that carriage returns overwrite, such as a progress bar. A carriage return at the end has
 * no effect.
 */
export function settledLine(line: string): string {
  let end = line.length;
  while (line[end - 1] === '\r') end -= 1;
  return line.slice(line.lastIndexOf('\r', end - 1) + 1, end);
}

/** `parseAnsi` as plain text. */
export function stripAnsi(output: string): string {
  const settled = overwriteLines(output);
  const texts = ansiPieces(settled).map(({ from, to, isEscape }) => (isEscape ? '' : settled.slice(from, to)));
  return readable(texts.join(''));
}

function readable(text: string): string {
  // Lone surrogates would differ between the server's markup and the browser.
  return text.replace(CONTROL, '').replace(BIDI, '').toWellFormed();
}

/** True if `stripAnsi` would drop characters. */
export function hasControls(text: string): boolean {
  return text.search(CONTROL) !== -1 || text.search(BIDI) !== -1;
}

function overwriteLines(output: string): string {
  return output.includes('\r') ? output.split('\n').map(settledLine).join('\n') : output;
}

const SGR_CODES: Record<number, Partial<AnsiStyle>> = {
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underline: false },
  39: { colour: null },
  ...Object.fromEntries(COLOURS.flatMap((colour, index) => [30 + index, 90 + index].map((code) => [code, { colour }]))),
};

function applySgr(style: AnsiStyle, parameters: string): AnsiStyle {
  const codes = parameters === '' ? [0] : parameters.split(/[;:]/).map(Number);
  let next = style;
  for (let index = 0; index < codes.length; index++) {
    const code = codes[index] as number;
    // Skips the arguments of extended colours.
    if (code === 38 || code === 48) index += codes[index + 1] === 5 ? 2 : codes[index + 1] === 2 ? 4 : 0;
    else if (code === 0) next = PLAIN;
    else if (code in SGR_CODES) next = { ...next, ...SGR_CODES[code] };
  }
  return next;
}

function classOf(style: AnsiStyle): string | null {
  const names = [
    style.colour !== null && `ansi-${style.colour}`,
    style.bold && 'ansi-bold',
    style.dim && 'ansi-dim',
    style.italic && 'ansi-italic',
    style.underline && 'ansi-underline',
  ].filter((name) => name !== false);
  return names.length === 0 ? null : names.join(' ');
}
