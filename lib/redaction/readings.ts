import { BEGUN, type SecretSpan } from './secret-span';

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
    String.raw`|\\(?:["'\x60\\/nrt]|u00[0-7][0-9a-fA-F]|x[2-7][0-9a-fA-F])|%(?:2[0-9A-Fa-f]|3[0-9A-Fa-f]|5[BbDd]|7[BbDd])|&(?:quot|amp|apos|lt|gt|#\d{2,3}|#x[0-9a-fA-F]{2});`,
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
  let last: Reading = { text, start: (at) => at, end: (at) => at + 1 };
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    const next = decode(last);
    if (next === null) break;
    readings.push(next);
    last = next;
  }
  return readings;
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

function decode(reading: Reading): Reading | null {
  const { text } = reading;
  if (!/[\\%&]/.test(text) && !text.includes('\u001b')) return null;
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
  for (const { 0: sequence, index } of text.matchAll(ESCAPE)) {
    keep(index);
    from = index + sequence.length;
    hasEscape = true;
    if (sequence.length > 3 && /\[[0-9;?]*[A-Za-z]$/.test(sequence)) continue;
    pieces.push({ at, from: index, to: from, isEscape: true });
    parts.push(character(sequence));
    at += 1;
  }
  if (!hasEscape) return null;
  const cut = BEGUN_ESCAPE.exec(text.slice(from).slice(-8))?.[0].length ?? 0;
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
