import { findEscapes } from '../ansi-escapes';
import { findKeys, mergeSpans } from './find-secrets';
import { redactionMark, type SecretSpan } from './secret-span';

/** A piece of what a command writes, and what stands around it. */
export interface OutputWindow {
  /** What came before: a secret that begins there is known by its whole. */
  behind: string;
  piece: string;
  /** What has been written behind it. */
  ahead: string;
}

/** Whoever knows where the secrets of a text are. */
export interface SecretFinder {
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
    ...spansIn(text.slice(from), (plain) => redactor.find(plain)).map((span) => moved(span, from)),
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
const UNSEEN = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\p{Default_Ignorable_Code_Point}\p{Bidi_Control}]/u;
const SEQUENCES = new RegExp(String.raw`(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|${UNSEEN.source}`, 'gu');
const CONTROLS = new RegExp(UNSEEN.source, 'gu');

/** A text without whatever in it nobody sees. */
export function seenText(text: string): string {
  return text.replace(SEQUENCES, '');
}

/**
 * Where the secrets of a text are, whichever way it is read: with everything in it that is a text, such as titles of
 * windows, and as a terminal shows it.
 */
export function spansIn(text: string, find: (plain: string) => SecretSpan[]): SecretSpan[] {
  if (!UNSEEN.test(text)) return find(text);
  const bare = [...text.matchAll(SEQUENCES)].map(({ 0: sequence, index }) => ({
    from: index,
    to: index + sequence.length,
  }));
  return [bare, unseenIn(text)].flatMap((gaps) => {
    const stretches = stretchesBetween(text, gaps);
    const plain = stretches.map(({ from, to }) => text.slice(from, to)).join('');
    return find(plain).map(({ start, end, kind }) => ({
      start: placeIn(stretches, start),
      end: placeIn(stretches, end - 1) + 1,
      kind,
    }));
  });
}

interface Range {
  from: number;
  to: number;
}

/** What a terminal does not show. A sequence that is not ended is at the end of its line. */
function unseenIn(text: string): Range[] {
  const gaps: Range[] = [];
  for (let at = 0; at <= text.length; ) {
    const newline = text.indexOf('\n', at);
    const end = newline < 0 ? text.length : newline;
    const line = text.slice(at, end);
    let from = 0;
    const addControls = (to: number) => {
      for (const { 0: control, index } of line.slice(from, to).matchAll(CONTROLS))
        gaps.push({ from: at + from + index, to: at + from + index + control.length });
    };
    for (const sequence of findEscapes(line)) {
      addControls(sequence.from);
      gaps.push({ from: at + sequence.from, to: at + sequence.to });
      from = sequence.to;
    }
    addControls(line.length);
    if (newline < 0) break;
    at = end + 1;
  }
  return gaps;
}

/** What stands between gaps. `at` is its place in the text without them. */
interface Stretch extends Range {
  at: number;
}

function stretchesBetween(text: string, gaps: readonly Range[]): Stretch[] {
  const stretches: Stretch[] = [];
  let from = 0;
  let at = 0;
  for (const gap of [...gaps, { from: text.length, to: text.length }]) {
    if (gap.from > from) {
      stretches.push({ from, to: gap.from, at });
      at += gap.from - from;
    }
    from = gap.to;
  }
  return stretches;
}

/** Where a sign of the text without gaps stands in the text with them. */
function placeIn(stretches: readonly Stretch[], at: number): number {
  let low = 0;
  let high = stretches.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((stretches[middle] as Stretch).at <= at) low = middle;
    else high = middle - 1;
  }
  const stretch = stretches[low];
  return stretch === undefined ? at : stretch.from + at - stretch.at;
}

function moved({ start, end, kind }: SecretSpan, by: number): SecretSpan {
  return { start: start + by, end: end + by, kind };
}
