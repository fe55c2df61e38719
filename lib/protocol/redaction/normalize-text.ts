import { BEGUN, type SecretSpan } from './secret-values';

/** A text as a program would read it, and where each of its characters came from. */
export interface Reading {
  text: string;
  /** Where the character came from, and where what it was written with ends. */
  start(at: number): number;
  end(at: number): number;
}

/** A terminal's sequence, which is not part of what it colours. */
const SEQUENCE = String.raw`(?:\x1b|\\(?:u001b|u001B|x1b|x1B|033|e))\[[0-9;?]{0,32}[A-Za-z]`;
/** Escapes of JSON and of most languages, of addresses and of HTML. */
const ESCAPE = new RegExp(
  SEQUENCE +
    String.raw`|\\(?:["'\x60\\/nrt]|u00[0-7][0-9a-fA-F]|x[2-7][0-9a-fA-F])|%(?:2[0-9A-Fa-f]|3[0-9A-Fa-f]|5[BbDd]|7[BbDd])|&(?:quot|amp|apos|lt|gt|nbsp|#\d{2,3}|#x[0-9a-fA-F]{2});`,
  'g',
);
/** The beginning of one at the end of a text. */
const BEGUN_ESCAPE = /(?:\\(?:u0{0,2}[0-7]?|x[2-7]?)?|%[2-7]?|&(?:[a-z]{1,4}|#x?[0-9a-fA-F]{0,3}))$/;
const CONTROLS: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' };
const ENTITIES: Readonly<Record<string, string>> = { quot: '"', amp: '&', apos: "'", lt: '<', gt: '>' };
/** JSON in JSON in JSON. */
const MOST_ROUNDS = 3;

/** The text with its escapes decoded, once, twice and three times, as far as that changes it. */
export function decodedReadings(text: string): Reading[] {
  const readings: Reading[] = [];
  let last = written(text);
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const next = mayHaveEscapes(last.text) ? rewritten(last, ESCAPE, character, BEGUN_ESCAPE) : null;
    if (next === null) break;
    readings.push(next);
    last = next;
  }
  return readings;
}

function mayHaveEscapes(text: string): boolean {
  return /[\\%&]/.test(text) || text.includes('\u001b');
}

const TAG = (names: string) => `<(?:${names})(?:\\s[^<>]{0,4096})?>`;
/** Emphasis of Markdown, and tags that divide or emphasize. */
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
/** The beginning of a tag at the end of a text. */
const BEGUN_TAG = /<\/?[a-z\d]{0,6}$/i;
const MAY_HAVE_MARKUP = /[*_]|<[a-z/]/i;

/**
 * The text without emphasis and tags, so that a label and its value stand side by side. A cell begins with `|`, one of a
 * table's header with `¦`. Null if there is no markup.
 */
export function unmarkedReading(text: string, decoded?: Reading): Reading | null {
  const reading = decoded ?? written(text);
  return MAY_HAVE_MARKUP.test(reading.text) ? rewritten(reading, MARKUP, divider, BEGUN_TAG) : null;
}

const TIME = String.raw`\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d[\d:.,+Z-]{0,20}\]?[ \t]`;
/**
 * What editors, diffs, quotes and logs print before each line: a number, a mark, a time, the name of a file or a service.
 */
export const GUTTER = new RegExp(
  [
    `^(?:${TIME}`,
    String.raw` {0,8}\d{1,6}(?:→|\t|[:|-] ?| {1,4}[│|┃] )`,
    // comments, pytest, levels
    String.raw`(?:#{1,3}|//| ?\*) |E {3}|\[[A-Z]{3,8}\] `,
    String.raw`\+(?!\+\+ )|-(?!-- )| (?=\S)|> ?`,
    String.raw`[\w./-]{1,200}[:-]\d{1,6}[:-]`,
    String.raw`[\w.-]{1,64} {1,40}\| (?:${TIME})?`,
    String.raw`\^?[\da-f]{7,40} \([^()\n]{1,80} \d{1,6}\) `,
    // syslog, BuildKit
    String.raw`[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,64} [\w./@-]{1,64}(?:\[\d{1,7}\])?: `,
    String.raw`#\d{1,4} (?:\d{1,5}\.\d{1,3} )?)`,
  ].join('|'),
);

const GUTTERS = new RegExp(GUTTER.source, 'gm');

/** The text without gutters; null if it has none, or no second line. */
export function ungutteredReading(text: string, decoded?: Reading): Reading | null {
  const reading = decoded ?? written(text);
  return reading.text.includes('\n') ? rewritten(reading, GUTTERS, () => '') : null;
}

/** A line break that continues a command: of a POSIX shell, of PowerShell, of cmd. */
const CONTINUATION = /(?<![ \t])(?:[ \t]*\\|[ \t]+[`^])\r?\n[ \t]*/g;

/** The text with each command on one line; null if none goes on behind a line break. */
export function joinedReading(text: string, before?: Reading): Reading | null {
  const reading = before ?? written(text);
  const mayContinue = reading.text.includes('\n') && /[\\`^]\r?\n/.test(reading.text);
  return mayContinue ? rewritten(reading, CONTINUATION, () => ' ') : null;
}

function divider(sequence: string): string {
  if (!sequence.startsWith('<')) return '';
  if (/<(?:td|dd|dt)\b[^<]*$|>\s*<(?:span|div|code)/i.test(sequence)) return '|';
  if (/<th\b[^<]*$/i.test(sequence)) return '¦';
  return /^<\/?(?:tr|dl|p|div|li|pre|h\d|br)\b/i.test(sequence) ? '\n' : '';
}

function written(text: string): Reading {
  return { text, start: (at) => at, end: (at) => at + 1 };
}

/** A span of a reading in the text that it was made from. What may go on reaches to the end, a broken escape included. */
export function mapped({ start, end, kind }: SecretSpan, reading: Reading, text: string): SecretSpan {
  const isOpen = kind === BEGUN && end === reading.text.length;
  return { start: reading.start(start), end: isOpen ? text.length : reading.end(end - 1), kind };
}

/** A run of characters that are the same in both texts, or a single one that an escape stands for. */
interface Piece {
  at: number;
  from: number;
  to: number;
  isEscape: boolean;
}

/**
 * @param characterOf the character that a sequence stands for, or nothing
 * @param begun the beginning of a sequence at the end of the text, which is left out
 * @returns null if the text has no such sequence
 */
function rewritten(
  reading: Reading,
  sequences: RegExp,
  characterOf: (sequence: string) => string,
  begun?: RegExp,
): Reading | null {
  const { text } = reading;
  const pieces: Piece[] = [];
  const parts: string[] = [];
  let from = 0;
  let at = 0;
  let hasEscape = false;
  const keep = (to: number) => {
    if (to <= from) return;
    pieces.push({ at, from, to, isEscape: false });
    parts.push(text.slice(from, to));
    at += to - from;
  };
  for (const { 0: sequence, index } of text.matchAll(sequences)) {
    keep(index);
    from = index + sequence.length;
    hasEscape = true;
    const character = characterOf(sequence);
    if (character === '') continue;
    pieces.push({ at, from: index, to: from, isEscape: true });
    parts.push(character);
    at += 1;
  }
  if (!hasEscape) return null;
  const cut = begun?.exec(text.slice(from).slice(-8))?.[0].length ?? 0;
  keep(text.length - cut);
  return {
    text: parts.join(''),
    start: (place) => {
      const piece = pieceAt(pieces, place);
      return reading.start(piece.isEscape ? piece.from : piece.from + place - piece.at);
    },
    end: (place) => {
      const piece = pieceAt(pieces, place);
      return reading.end(piece.isEscape ? piece.to - 1 : piece.from + place - piece.at);
    },
  };
}

function character(sequence: string): string {
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
