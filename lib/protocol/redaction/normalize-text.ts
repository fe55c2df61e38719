import { PENDING, type SecretSpan } from './secret-values';

/** A normalized text with a mapping to the original. */
interface MappedText {
  text: string;
  /** Index in the original at which the character's source starts. */
  start(at: number): number;
  /** Index in the original after the character's source. */
  end(at: number): number;
}

/** An ANSI escape sequence, raw or written as an escape. */
const SEQUENCE = String.raw`(?:\x1b|\\(?:u001b|u001B|x1b|x1B|033|e))\[[0-9;?]{0,32}[A-Za-z]`;
/** Escapes of JSON and most programming languages, percent-encoding and HTML entities. */
const ESCAPE = new RegExp(
  SEQUENCE +
    String.raw`|\\(?:["'\x60\\/nrt]|u00[0-7][0-9a-fA-F]|x[2-7][0-9a-fA-F])|%(?:2[0-9A-Fa-f]|3[0-9A-Fa-f]|5[BbDd]|7[BbDd])|&(?:quot|amp|apos|lt|gt|nbsp|#\d{2,3}|#x[0-9a-fA-F]{2});`,
  'g',
);
/** The start of an escape at the end of a text. */
const PARTIAL_ESCAPE = /(?:\\(?:u0{0,2}[0-7]?|x[2-7]?)?|%[2-7]?|&(?:[a-z]{1,4}|#x?[0-9a-fA-F]{0,3}))$/;
const CONTROLS: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' };
const ENTITIES: Readonly<Record<string, string>> = { quot: '"', amp: '&', apos: "'", lt: '<', gt: '>' };
/** JSON nested three levels deep. */
const MAX_ROUNDS = 3;

/** Decodes escapes up to three times. Returns each round that changes the text, in order. */
export function unescapedTexts(text: string): MappedText[] {
  const rounds: MappedText[] = [];
  for (let source = unmapped(text); rounds.length < MAX_ROUNDS; ) {
    const next = MAY_HAVE_ESCAPES.test(source.text)
      ? replaceSequences(source, source.text.matchAll(ESCAPE), decodeEscape, PARTIAL_ESCAPE)
      : null;
    if (next === null) break;
    rounds.push(next);
    source = next;
  }
  return rounds;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: ANSI sequences start with ESC
const MAY_HAVE_ESCAPES = /[\\%&\u001b]/;

const TAG = (names: string) => `<(?:${names})(?:\\s[^<>]{0,4096})?>`;
/** Markdown emphasis, and HTML tags for structure and emphasis. */
const MARKUP = new RegExp(
  [
    String.raw`(?<![\w*])\*{1,3}(?=[^\s*])|(?<=[^\s*])\*{1,3}(?![\w*])`,
    String.raw`(?<!\w)_{1,3}(?=[^\s_])|(?<=[^\s_])_{1,3}(?!\w)`,
    String.raw`</t[dh]>\s{0,40}${TAG('t[dh]')}|</dt>\s{0,40}${TAG('dd')}|(?<!:)</(?:span|div|b|strong|label)>\s{0,40}${TAG('(?:span|div|code)')}`,
    TAG(
      '/?(?:t[dhr]|d[dlt]|b|strong|i|em|u|code|kbd|samp|tt|span|mark|small|font|a|label|p|div|li|pre|h[1-6]|br/?|table|thead|tbody|tfoot)',
    ),
  ].join('|'),
  'gi',
);
/** The start of a tag at the end of a text. */
const PARTIAL_TAG = /<\/?[a-z\d]{0,6}$/i;
const MAY_HAVE_MARKUP = /[*_]|<[a-z/]/i;

/**
 * Removes emphasis and tags, which puts a label next to its value. `|` replaces the start of a table cell and `¦` that of
 * a header cell. Null without markup.
 */
export function withoutMarkup(source: MappedText): MappedText | null {
  return MAY_HAVE_MARKUP.test(source.text)
    ? replaceSequences(source, source.text.matchAll(MARKUP), markupReplacement, PARTIAL_TAG)
    : null;
}

const TIME = String.raw`\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d[\d:.,+Z-]{0,20}\]?[ \t]`;
/** A line prefix of an editor, diff, quote or log: a number, a marker, a time, a file or service name. */
export const GUTTER = new RegExp(
  [
    `^(?:${TIME}`,
    String.raw` {0,8}\d{1,6}(?:→|\t|[:|-] ?| {1,4}[│|┃] )`,
    // Comments, pytest, levels.
    String.raw`(?:#{1,3}|//| ?\*) |E {3}|\[[A-Z]{3,8}\] `,
    String.raw`\+(?!\+\+ )|-(?!-- )| (?=\S)|> ?`,
    String.raw`[\w./-]{1,200}[:-]\d{1,6}[:-]`,
    String.raw`[\w.-]{1,64} {1,40}\| (?:${TIME})?`,
    String.raw`\^?[\da-f]{7,40} \([^()\n]{1,80} \d{1,6}\) `,
    // Syslog, BuildKit.
    String.raw`[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,64} [\w./@-]{1,64}(?:\[\d{1,7}\])?: `,
    String.raw`#\d{1,4} (?:\d{1,5}\.\d{1,3} )?)`,
  ].join('|'),
);

const GUTTERS = new RegExp(GUTTER.source, 'gm');

/** Removes gutters. Null without gutters, or for a single line. */
export function withoutGutters(source: MappedText): MappedText | null {
  return source.text.includes('\n') ? replaceSequences(source, source.text.matchAll(GUTTERS), () => '') : null;
}

/** A line continuation of a POSIX shell, PowerShell or cmd. */
const CONTINUATION = /(?<![ \t])(?:[ \t]*\\|[ \t]+[`^])\r?\n[ \t]*/g;

/** Puts each command on one line. Null without line continuations. */
export function withJoinedLines(source: MappedText): MappedText | null {
  const mayContinue = source.text.includes('\n') && /[\\`^]\r?\n/.test(source.text);
  return mayContinue ? replaceSequences(source, source.text.matchAll(CONTINUATION), () => ' ') : null;
}

/** Removes sequences, given in text order. */
export function withoutSequences(text: string, sequences: Iterable<Sequence>): MappedText {
  const source = unmapped(text);
  return replaceSequences(source, sequences, () => '') ?? source;
}

function markupReplacement(sequence: string): string {
  if (!sequence.startsWith('<')) return '';
  if (/<(?:td|dd|dt)\b[^<]*$|>\s*<(?:span|div|code)/i.test(sequence)) return '|';
  if (/<th\b[^<]*$/i.test(sequence)) return '¦';
  return /^<\/?(?:tr|dl|p|div|li|pre|h\d|br)\b/i.test(sequence) ? '\n' : '';
}

export function unmapped(text: string): MappedText {
  return { text, start: (at) => at, end: (at) => at + 1 };
}

/** Maps a span to the original text. A pending span at the end includes a partial escape behind it. */
export function toOriginalSpan({ start, end, kind }: SecretSpan, source: MappedText, text: string): SecretSpan {
  const isOpen = kind === PENDING && end === source.text.length;
  return { start: source.start(start), end: isOpen ? text.length : source.end(end - 1), kind };
}

/** An unchanged run of the source text (`from` to `to`), or the character that replaces a sequence. */
interface Piece {
  /** Index in the new text. */
  at: number;
  from: number;
  to: number;
  isReplaced: boolean;
}

/** A part of a text, compatible with a match of a pattern. */
export interface Sequence {
  0: string;
  index: number;
}

/**
 * @param replacementOf a single character, or an empty string
 * @param partial the start of a sequence at the end of the text, which is removed
 * @returns null if the text has no such sequence
 */
function replaceSequences(
  source: MappedText,
  sequences: Iterable<Sequence>,
  replacementOf: (sequence: string) => string,
  partial?: RegExp,
): MappedText | null {
  const { text } = source;
  const pieces: Piece[] = [];
  const parts: string[] = [];
  let from = 0;
  let at = 0;
  let hasSequence = false;
  const keep = (to: number) => {
    if (to <= from) return;
    pieces.push({ at, from, to, isReplaced: false });
    parts.push(text.slice(from, to));
    at += to - from;
  };
  for (const { 0: sequence, index } of sequences) {
    keep(index);
    from = index + sequence.length;
    hasSequence = true;
    const character = replacementOf(sequence);
    if (character === '') continue;
    pieces.push({ at, from: index, to: from, isReplaced: true });
    parts.push(character);
    at += 1;
  }
  if (!hasSequence) return null;
  const cut = partial?.exec(text.slice(from).slice(-8))?.[0].length ?? 0;
  keep(text.length - cut);
  return {
    text: parts.join(''),
    start: (place) => {
      const piece = pieceAt(pieces, place);
      return source.start(piece.isReplaced ? piece.from : piece.from + place - piece.at);
    },
    end: (place) => {
      const piece = pieceAt(pieces, place);
      return source.end(piece.isReplaced ? piece.to - 1 : piece.from + place - piece.at);
    },
  };
}

function decodeEscape(sequence: string): string {
  if (sequence.length > 3 && /\[[0-9;?]*[A-Za-z]$/.test(sequence)) return '';
  const body = sequence.slice(1);
  if (sequence.startsWith('\\')) {
    if (body.length > 1) return String.fromCharCode(Number.parseInt(body.slice(1), 16));
    return CONTROLS[body] ?? body;
  }
  if (sequence.startsWith('%')) return String.fromCharCode(Number.parseInt(body, 16));
  const name = body.slice(0, -1);
  if (!name.startsWith('#')) return ENTITIES[name] ?? ' ';
  return String.fromCharCode(name.startsWith('#x') ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1)));
}

function pieceAt(pieces: readonly Piece[], at: number): Piece {
  let low = 0;
  let high = pieces.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((pieces[middle] as Piece).at <= at) low = middle;
    else high = middle - 1;
  }
  return pieces[low] as Piece;
}
