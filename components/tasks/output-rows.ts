import { type AnsiSpan, type AnsiStyle, PLAIN, parseAnsi, styleAfter } from '@/components/ui/ansi';
import type { TaskOutput } from '@/lib/protocol/task-output';

/** A line of a task's output as a terminal would have shown it, or a place where something is not kept. */
export type OutputRow = OutputLine | { kind: 'hole'; bytes: number };

/** A stretch of a row that was searched for, `[start, end)`. */
export interface OutputHit {
  row: number;
  start: number;
  end: number;
}

/** A line of more goes on in another row: a browser lays out no line of a quarter of a million signs without a pause. */
const MOST_OF_ROW = 2_000;
/** Most hits that are counted. */
export const MOST_HITS = 5_000;

/** Of thousands of lines only those in sight are gone through, and all of them only for a search. */
export class OutputLine {
  readonly kind = 'line';
  readonly #written: string;
  readonly #begin: AnsiStyle;
  #spans: readonly AnsiSpan[] | null = null;
  #text: string | null = null;

  constructor(written: string, begin: AnsiStyle) {
    this.#written = written;
    this.#begin = begin;
  }

  get spans(): readonly AnsiSpan[] {
    this.#spans ??= parseAnsi(this.#written, Number.POSITIVE_INFINITY, this.#begin);
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
    if (from > at) rows.push({ kind: 'hole', bytes: from - at });
    let style = PLAIN;
    // without the line break at its end, which begins no line that anybody wrote
    for (const line of text.replace(/\r?\n$/, '').split('\n')) {
      // what a progress bar wrote over is not cut from what it wrote
      for (const piece of line.includes('\r') ? [line] : piecesOf(line)) {
        rows.push(new OutputLine(piece, style));
        style = styleAfter(piece, style);
      }
    }
    at = to;
  }
  return rows;
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
    const inLine = [...line.text.matchAll(pattern)].map(({ 0: found, index }) => ({
      row,
      start: index,
      end: index + found.length,
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
