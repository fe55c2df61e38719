import type { TaskOutput } from '@interlude/protocol/read-models';
import { type AnsiSpan, type AnsiStyle, PLAIN, parseAnsi, settledLine, styleAfter } from '@/components/ui/ansi';
import { lastPart } from '@/components/ui/last-part';

/** A line of a task's output as a terminal would have shown it, or a place where something is not kept: null bytes of it where nobody knows how much. */
export type OutputRow = OutputLine | { kind: 'hole'; bytes: number | null };

/** A stretch of a row that was searched for, `[start, end)`. */
export interface OutputHit {
  row: number;
  start: number;
  end: number;
}

/** A line of more goes on in another row: a browser lays out no line of a quarter of a million signs without a pause. */
const MOST_OF_ROW = 2_000;
/** Most changes of colour in a row: what follows has none. */
const MOST_SPANS = 300;
/** Most lines that are shown, the newest: nobody writes so many in so little text for people to read. */
const MOST_ROWS = 20_000;
/** Most hits that are counted. */
export const MOST_HITS = 5_000;

/** Of thousands of lines only those in sight are gone through, and all of them only for a search. */
export class OutputLine {
  readonly kind = 'line';
  /** The line goes on in the next row. */
  readonly goesOn: boolean;
  readonly #written: string;
  readonly #begin: AnsiStyle;
  #spans: readonly AnsiSpan[] | null = null;
  #text: string | null = null;

  constructor(written: string, begin: AnsiStyle, goesOn: boolean) {
    this.#written = written;
    this.#begin = begin;
    this.goesOn = goesOn;
  }

  get spans(): readonly AnsiSpan[] {
    this.#spans ??= parseAnsi(this.#written, MOST_SPANS, this.#begin);
    return this.#spans;
  }

  get text(): string {
    this.#text ??= this.spans.map(({ text }) => text).join('');
    return this.#text;
  }
}

export function outputRows({ parts }: TaskOutput): OutputRow[] {
  const rows: OutputRow[] = [];
  let at = 0;
  for (const { from, to, text } of parts) {
    if (from > at) rows.push({ kind: 'hole', bytes: at === 0 ? null : from - at });
    for (const row of linesOf(text)) rows.push(row);
    at = to;
  }
  if (rows.length <= MOST_ROWS) return rows;
  return [{ kind: 'hole', bytes: null }, ...rows.slice(-MOST_ROWS)];
}

function linesOf(text: string): OutputRow[] {
  const rows: OutputRow[] = [];
  let style = PLAIN;
  // without the line break at its end, which begins no line that anybody wrote
  for (const line of text.replace(/\r?\n$/, '').split('\n')) {
    const pieces = piecesOf(settledLine(line));
    for (const [index, piece] of pieces.entries()) {
      rows.push(new OutputLine(piece, style, index < pieces.length - 1));
      style = styleAfter(piece, style);
    }
  }
  return rows;
}

/** The end of an output, and whether that is all there is of it. */
export interface OutputEnd {
  rows: OutputLine[];
  isAll: boolean;
}

/** Whole lines in their colours, as many as a card has room for. */
export function endOfOutput({ parts }: TaskOutput, limits: { lines: number; characters: number }): OutputEnd {
  const last = parts.at(-1);
  if (last === undefined) return { rows: [], isAll: true };
  // far enough back for the colour that a line begins in
  const near = lastPart(last.text, { lines: 100, characters: 16 * 1024 });
  const rows = linesOf(near.text).filter((row) => row.kind === 'line');
  while (rows.at(-1)?.text.trim() === '') rows.pop();
  while (rows[0]?.text.trim() === '') rows.shift();
  const shown: OutputLine[] = [];
  let room = limits.characters;
  for (const row of rows.slice(-limits.lines).reverse()) {
    const isEnough = limits.characters - room > limits.characters / 4;
    if (isEnough && row.text.length > room) break;
    room -= row.text.length;
    shown.unshift(row);
  }
  const isAll = parts.length === 1 && last.from === 0 && !near.isCut && shown.length === rows.length;
  while (shown[0]?.text.trim() === '') shown.shift();
  return { rows: shown, isAll };
}

/** Never between the two halves of a character, nor within an escape sequence of usual length. */
function piecesOf(line: string): string[] {
  const pieces: string[] = [];
  let at = 0;
  while (line.length - at > MOST_OF_ROW) {
    let end = at + MOST_OF_ROW;
    const sequence = line.lastIndexOf('\u001b', end - 1);
    if (sequence > at && end - sequence < LONGEST_ESCAPE) end = sequence;
    if (/[\udc00-\udfff]/.test(line.charAt(end))) end -= 1;
    pieces.push(line.slice(at, end));
    at = end;
  }
  return [...pieces, line.slice(at)];
}

const LONGEST_ESCAPE = 32;

/** Where a text stands in the rows, in any case; the newest `MOST_HITS` of them. */
export function findInOutput(rows: readonly OutputRow[], wanted: string): OutputHit[] {
  if (wanted === '') return [];
  const pattern = new RegExp(wanted.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'), 'gi');
  const hits: OutputHit[] = [];
  for (let row = rows.length - 1; row >= 0 && hits.length < MOST_HITS; row--) {
    const line = rows[row];
    if (line?.kind !== 'line') continue;
    // a hit that goes on in the next row is one of this
    const next = rows[row + 1];
    const rest = line.goesOn && next?.kind === 'line' ? next.text.slice(0, wanted.length - 1) : '';
    const inLine = [...(line.text + rest).matchAll(pattern)].map(({ 0: found, index }) => ({
      row,
      start: index,
      end: Math.min(line.text.length, index + found.length),
    }));
    hits.push(...inLine.reverse());
  }
  return hits.slice(0, MOST_HITS).reverse();
}

/** A row's text in stretches of one look. */
export interface OutputStretch {
  text: string;
  className: string | null;
  /** Which of the hits it is; null if it is none. */
  hit: OutputHit | null;
}

/** @param hits those of the row, in order */
export function stretchesOf(spans: readonly AnsiSpan[], hits: readonly OutputHit[]): OutputStretch[] {
  if (hits.length === 0) return spans.map((span) => ({ ...span, hit: null }));
  const stretches: OutputStretch[] = [];
  let place = 0;
  let next = 0;
  for (const { text, className } of spans) {
    const end = place + text.length;
    let at = place;
    while (at < end) {
      while (next < hits.length && (hits[next] as OutputHit).end <= at) next += 1;
      const hit = hits[next];
      const isIn = hit !== undefined && hit.start <= at;
      const upTo = Math.min(end, hit === undefined ? end : isIn ? hit.end : hit.start);
      stretches.push({ text: text.slice(at - place, upTo - place), className, hit: isIn ? hit : null });
      at = upTo;
    }
    place = end;
  }
  return stretches;
}
