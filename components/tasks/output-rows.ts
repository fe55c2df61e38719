import { type AnsiSpan, parseAnsi } from '@/components/ui/ansi';
import type { TaskOutput } from '@/lib/protocol/task-output';

/** A line of a task's output as a terminal would have shown it, or a place where something is not kept. */
export type OutputRow = { kind: 'line'; spans: readonly AnsiSpan[]; text: string } | { kind: 'hole'; bytes: number };

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

export function outputRows({ parts }: TaskOutput): OutputRow[] {
  const rows: OutputRow[] = [];
  let at = 0;
  for (const { from, to, text } of parts) {
    if (from > at) rows.push({ kind: 'hole', bytes: from - at });
    // without the line break at its end, which begins no line that anybody wrote
    for (const line of linesOf(parseAnsi(text.replace(/\r?\n$/, ''), Number.POSITIVE_INFINITY))) rows.push(line);
    at = to;
  }
  return rows;
}

function* linesOf(spans: readonly AnsiSpan[]): Generator<OutputRow> {
  let line: AnsiSpan[] = [];
  let length = 0;
  const take = (): OutputRow => {
    const row: OutputRow = { kind: 'line', spans: line, text: line.map(({ text }) => text).join('') };
    [line, length] = [[], 0];
    return row;
  };
  for (const { text, className } of spans) {
    for (let at = 0; at <= text.length; ) {
      const newline = text.indexOf('\n', at);
      const end = newline === -1 ? text.length : newline;
      while (length + end - at > MOST_OF_ROW) {
        const cut = wholeUpTo(text, at + MOST_OF_ROW - length);
        line.push({ text: text.slice(at, cut), className });
        yield take();
        at = cut;
      }
      if (end > at) line.push({ text: text.slice(at, end), className });
      length += end - at;
      if (newline === -1) break;
      yield take();
      at = newline + 1;
    }
  }
  yield take();
}

/** Never between the two halves of a character. */
function wholeUpTo(text: string, at: number): number {
  return /[\udc00-\udfff]/.test(text.charAt(at)) ? at - 1 : at;
}

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
