import { LONE_SURROGATES } from '@/lib/projections/lone-surrogates';

/**
 * What a terminal would have shown of some output, as text with a few colours.
 *
 * Only SGR colours and attributes are understood. Every other escape (cursor, title, hyperlink, device query) and every
 * control character is dropped: output of an agent's commands must not act on whoever reads it.
 *
 * @see ECMA-48 §8.3.117 (SGR)
 */
export interface AnsiSpan {
  text: string;
  /** `ansi-…` class names, or null for plain text. */
  className: string | null;
}

interface Style {
  colour: string | null;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
}

const PLAIN: Style = { colour: null, bold: false, dim: false, italic: false, underline: false };
const COLOURS = ['grey', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', null] as const;

// CSI … final byte, OSC/DCS/SOS/PM/APC … ST or BEL (or unfinished, to the end), then any other escape of two bytes.
const ESCAPE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escapes are what this is about
  /(?:\x1b\[|\x9b)([0-?]*)[ -/]*([@-~])|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)|\x1b[ -/]*[0-~]?/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: see above
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;
// Marks that turn the direction of text around can make one command look like another.
const BIDI = /[\u202a-\u202e\u2066-\u2069\u200e\u200f]/g;

/** A stretch of some output: text in one style, or an escape that is no colour. `from` and `to` are places in it. */
export interface AnsiPiece {
  from: number;
  to: number;
  className: string | null;
  isEscape: boolean;
}

/**
 * Colours taken out and applied, everything else left where it stands, to be shown and not obeyed: for logs, where
 * what a program wrote matters more than what a terminal would have made of it.
 */
export function ansiPieces(output: string): AnsiPiece[] {
  const pieces: AnsiPiece[] = [];
  let style = PLAIN;
  let from = 0;
  const push = (to: number, isEscape: boolean) => {
    if (to > from) pieces.push({ from, to, className: classOf(style), isEscape });
    from = to;
  };
  for (const match of output.matchAll(ESCAPE)) {
    push(match.index, false);
    const end = match.index + match[0].length;
    if (match[2] === 'm' && !/[<-?]/.test(match[1] ?? '')) {
      style = applySgr(style, match[1] ?? '');
      from = end;
    } else {
      push(end, true);
    }
  }
  push(output.length, false);
  return pieces;
}

export function parseAnsi(output: string): AnsiSpan[] {
  const spans: AnsiSpan[] = [];
  let style = PLAIN;
  let from = 0;
  const push = (raw: string) => {
    const text = readable(raw);
    const className = classOf(style);
    const last = spans.at(-1);
    if (text === '') return;
    if (last && last.className === className) last.text += text;
    else spans.push({ text, className });
  };
  const settled = overwriteLines(output);
  for (const match of settled.matchAll(ESCAPE)) {
    push(settled.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[2] === 'm') style = applySgr(style, match[1] ?? '');
  }
  push(settled.slice(from));
  return spans;
}

/** The same without colours. */
export function stripAnsi(output: string): string {
  return readable(overwriteLines(output).replace(ESCAPE, ''));
}

function readable(text: string): string {
  // a page with half a character would not be the same in the browser as from the server
  return text.replace(CONTROL, '').replace(BIDI, '').replace(LONE_SURROGATES, '\uFFFD');
}

/** A name or a title an agent gave, on one line and without anything a terminal would act on. */
export function plainText(text: string): string {
  return stripAnsi(text).replace(/\s+/g, ' ').trim();
}

/** A progress bar writes its line again and again; what counts is what stood there at the end. */
function overwriteLines(output: string): string {
  if (!output.includes('\r')) return output;
  return output
    .replace(/\r+\n/g, '\n')
    .split('\n')
    .map((line) => {
      const parts = line.split('\r').filter((part) => part !== '');
      return parts.at(-1) ?? '';
    })
    .join('\n');
}

function applySgr(style: Style, parameters: string): Style {
  const codes = parameters === '' ? [0] : parameters.split(/[;:]/).map(Number);
  let next = style;
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at] as number;
    if (code === 0) next = PLAIN;
    else if (code === 1) next = { ...next, bold: true };
    else if (code === 2) next = { ...next, dim: true };
    else if (code === 3) next = { ...next, italic: true };
    else if (code === 4) next = { ...next, underline: true };
    else if (code === 22) next = { ...next, bold: false, dim: false };
    else if (code === 23) next = { ...next, italic: false };
    else if (code === 24) next = { ...next, underline: false };
    else if (code >= 30 && code <= 37) next = { ...next, colour: COLOURS[code - 30] ?? null };
    else if (code >= 90 && code <= 97) next = { ...next, colour: COLOURS[code - 90] ?? null };
    else if (code === 39) next = { ...next, colour: null };
    else if (code === 38 || code === 48) at += codes[at + 1] === 5 ? 2 : codes[at + 1] === 2 ? 4 : 0;
  }
  return next;
}

function classOf(style: Style): string | null {
  const names = [
    style.colour !== null && `ansi-${style.colour}`,
    style.bold && 'ansi-bold',
    style.dim && 'ansi-dim',
    style.italic && 'ansi-italic',
    style.underline && 'ansi-underline',
  ].filter((name) => name !== false);
  return names.length === 0 ? null : names.join(' ');
}
