import type { TaskOutput } from '@interlude/protocol/read-models';
import { type AnsiSpan, type AnsiStyle, PLAIN, parseAnsi, settledLine, styleAfter } from '@/components/ui/ansi';
import { lastPart } from '@/components/ui/truncate';

/**
 * A line of a task's output as a terminal would show it, or a hole where output was dropped; `bytes` is null if
 * unknown.
 */
export type OutputRow = OutputLine | { kind: 'hole'; bytes: number | null };

/** A search hit in a row, `[start, end)`. */
export interface OutputHit {
  row: number;
  start: number;
  end: number;
}

/** Longer lines continue in another row: browsers are slow with very long lines. */
const MAX_OF_ROW = 2_000;
/** Maximum number of colour changes per row; the rest of the row is plain. */
const MAX_SPANS = 300;
/** Maximum number of lines shown, the newest. */
const MAX_ROWS = 20_000;
/** Maximum number of hits counted. */
export const MAX_HITS = 5_000;

/** A line, parsed only when it is shown or searched. */
export class OutputLine {
  readonly kind = 'line';
  /** True if the line continues in the next row. */
  readonly isContinued: boolean;
  readonly #written: string;
  readonly #begin: AnsiStyle;
  #spans: readonly AnsiSpan[] | null = null;
  #text: string | null = null;

  constructor(written: string, begin: AnsiStyle, isContinued: boolean) {
    this.#written = written;
    this.#begin = begin;
    this.isContinued = isContinued;
  }

  get spans(): readonly AnsiSpan[] {
    this.#spans ??= parseAnsi(this.#written, MAX_SPANS, this.#begin);
    return this.#spans;
  }

  get text(): string {
    this.#text ??= this.spans.map(({ text }) => text).join('');
    return this.#text;
  }
}

export function outputRows({ parts }: TaskOutput): OutputRow[] {
  const rows: OutputRow[] = [];
  let index = 0;
  for (const { from, to, text } of parts) {
    if (from > index) rows.push({ kind: 'hole', bytes: index === 0 ? null : from - index });
    for (const row of linesOf(text)) rows.push(row);
    index = to;
  }
  if (rows.length <= MAX_ROWS) return rows;
  return [{ kind: 'hole', bytes: null }, ...rows.slice(-MAX_ROWS)];
}

function linesOf(text: string): OutputRow[] {
  const rows: OutputRow[] = [];
  let style = PLAIN;
  // The last line break doesn't start a line.
  for (const line of text.replace(/\r?\n$/, '').split('\n')) {
    const pieces = piecesOf(settledLine(line));
    for (const [index, piece] of pieces.entries()) {
      rows.push(new OutputLine(piece, style, index < pieces.length - 1));
      style = styleAfter(piece, style);
    }
  }
  return rows;
}

/** The end of an output; `isAll` if nothing precedes it. */
interface OutputEnd {
  rows: OutputLine[];
  isAll: boolean;
}

/** The last whole lines with their colours, as many as a card shows. */
export function endOfOutput({ parts }: TaskOutput, limits: { lines: number; characters: number }): OutputEnd {
  const last = parts.at(-1);
  if (last === undefined) return { rows: [], isAll: true };
  // Starts far enough back to determine the colour at the start of a line.
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

/** Splits a long line without breaking surrogate pairs or escape sequences of usual length. */
function piecesOf(line: string): string[] {
  const pieces: string[] = [];
  let index = 0;
  while (line.length - index > MAX_OF_ROW) {
    let end = index + MAX_OF_ROW;
    const sequence = line.lastIndexOf('\u001b', end - 1);
    if (sequence > index && end - sequence < LONGEST_ESCAPE) end = sequence;
    if (/[\udc00-\udfff]/.test(line.charAt(end))) end -= 1;
    pieces.push(line.slice(index, end));
    index = end;
  }
  return [...pieces, line.slice(index)];
}

const LONGEST_ESCAPE = 32;

/** Case-insensitive hits, at most the newest `MAX_HITS`. */
export function findInOutput(rows: readonly OutputRow[], query: string): OutputHit[] {
  if (query === '') return [];
  const pattern = new RegExp(query.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'), 'gi');
  const hits: OutputHit[] = [];
  for (let row = rows.length - 1; row >= 0 && hits.length < MAX_HITS; row--) {
    const line = rows[row];
    if (line?.kind !== 'line') continue;
    // A hit that continues in the next row belongs to this one.
    const next = rows[row + 1];
    const rest = line.isContinued && next?.kind === 'line' ? next.text.slice(0, query.length - 1) : '';
    const inLine = [...(line.text + rest).matchAll(pattern)].map(({ 0: found, index }) => ({
      row,
      start: index,
      end: Math.min(line.text.length, index + found.length),
    }));
    hits.push(...inLine.reverse());
  }
  return hits.slice(0, MAX_HITS).reverse();
}

/** A part of a row with one style. */
interface OutputSegment {
  text: string;
  className: string | null;
  /** The hit it belongs to, or null. */
  hit: OutputHit | null;
}

/** @param hits of this row, in order */
export function segmentsOf(spans: readonly AnsiSpan[], hits: readonly OutputHit[]): OutputSegment[] {
  if (hits.length === 0) return spans.map((span) => ({ ...span, hit: null }));
  const stretches: OutputSegment[] = [];
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
