import { comparePositions, laterPosition, ORIGIN, type Position } from '@interlude/protocol/position';
import type { LogLine } from '@interlude/protocol/read-models';

/** A gapless part of the log: all matching lines from `from` to `to`, ascending. */
export interface Run {
  from: Position;
  to: Position;
  lines: LogLine[];
}

/** Lines missing before a run. */
interface Missing {
  /** Number of lines known to be missing. */
  lines: number;
  /** True if more lines may be missing. */
  hasMore: boolean;
  /** True if the lines outran the search and load only on request. */
  skipped: boolean;
}

export interface Gap extends Missing {
  /** Exclusive; null at the beginning of the log. */
  after: Position | null;
  /** Exclusive; null at the end, before the first live line. */
  before: Position | null;
}

/**
 * A held line, a known but missing line, or an unknown number of missing lines. `line` is the line's number, an
 * estimate for lines that a filter hides.
 */
export type LogRow = { kind: 'line'; line: LogLine } | MissingRow;
/** `at`: its index in the gap. */
export type MissingRow =
  | { kind: 'missing'; line: number; gap: Gap; at: number }
  | { kind: 'more'; line: number; gap: Gap };

interface WindowLimits {
  /** Number of lines held on either side of the reader. */
  reach: number;
  /** Number of lines held on either side, however long they are. */
  margin: number;
  /** Number of newest lines held, wherever the reader is. */
  tail: number;
  /** Maximum size of the text on either side and in the tail, in UTF-16 code units. */
  chars: number;
}

/** Ten pages around the reader, more than any screen shows. A line may have 64 KiB. */
const WINDOW_LIMITS: WindowLimits = { reach: 2_500, margin: 150, tail: 1_000, chars: 4 * 1024 * 1024 };

const NOTHING: Missing = { lines: 0, hasMore: false, skipped: false };
const UNKNOWN: Missing = { ...NOTHING, hasMore: true };

interface Held extends Run {
  /** True if the line at `from` itself is unknown. */
  isOpen: boolean;
  /** Lines missing before this run. */
  missing: Missing;
  /** Number of its first line. */
  number: number;
}

/**
 * The lines of a log that the page holds, as runs in order. The last run is the live tail. The rows span the whole log
 * as far as it is known.
 *
 * Ordering: by position, each line once. Adjacent runs are merged.
 * Failure: an evicted line stays a row. Every gap has a row, except the one before the first run.
 */
export class LogWindow {
  readonly #limits: WindowLimits;
  /** True if every line matches, so that line numbers also count the missing lines. */
  readonly isDense: boolean;
  #runs: Held[] = [];
  #firstLine = 1;
  #lastLine = 0;

  constructor(isDense: boolean, limits: WindowLimits = WINDOW_LIMITS) {
    this.isDense = isDense;
    this.#limits = limits;
  }

  /** Number of held lines. */
  get heldCount(): number {
    return this.#runs.reduce((sum, { lines }) => sum + lines.length, 0);
  }

  /** Number of lines known to match, held or not. */
  get lineCount(): number {
    return this.#runs.reduce((sum, { lines, missing }) => sum + missing.lines + lines.length, 0);
  }

  get rowCount(): number {
    return this.#runs.reduce((sum, run, index) => sum + this.#rowsBefore(index) + run.lines.length, 0);
  }

  /** True if more lines may match. */
  get hasMore(): boolean {
    return this.#runs.some(({ missing }) => missing.hasMore);
  }

  /** The gap before all rows; null if the first row is the beginning of the log. */
  get older(): Gap | null {
    return this.#runs[0]?.missing.hasMore ? this.#gapBefore(0) : null;
  }

  /** Sets the range of line numbers. */
  extend(firstLine: number, lastLine: number): void {
    this.#firstLine = Math.max(this.#firstLine, firstLine);
    this.#lastLine = Math.max(this.#lastLine, lastLine);
  }

  /** Starts the live tail at a position. */
  beginLive(position: Position): void {
    const tail = this.#runs.at(-1);
    if (tail && comparePositions(tail.to, position) >= 0) return;
    this.#pushTail(position, UNKNOWN);
  }

  /** Appends live lines: all matches up to `to`. */
  append(lines: readonly LogLine[], to: Position): void {
    const tail = this.#runs.at(-1);
    if (tail === undefined) return;
    for (const line of lines) if (comparePositions(line.position, tail.to) > 0) tail.lines.push(line);
    tail.to = laterPosition(tail.to, to);
    this.extend(0, tail.lines.at(-1)?.line ?? 0);
    this.#joinRuns();
  }

  /** Skips live lines up to `to`, which may match. */
  skipLive(to: Position): void {
    this.#pushTail(to, { ...UNKNOWN, skipped: true });
  }

  /** Inserts a page where it belongs. */
  insert(page: Run): void {
    const begin = firstWhere(this.#runs, ({ to }) => comparePositions(to, page.from) >= 0);
    const end = firstWhere(this.#runs, ({ from }) => comparePositions(from, page.to) > 0);
    const touched = this.#runs.slice(begin, end);
    const [first, last, next] = [touched[0], touched.at(-1), this.#runs[end]];
    this.extend(0, page.lines.at(-1)?.line ?? 0);
    const number = page.lines[0]?.line ?? this.#lastLine + 1;
    const run = touched.reduce(joined, { ...page, isOpen: false, missing: NOTHING, number });
    if (first && last) {
      run.missing = without(first.missing, countBefore(page.lines, first.from));
      if (next) next.missing = without(next.missing, page.lines.length - countUpTo(page.lines, last.to));
    } else {
      const gap = next?.missing ?? UNKNOWN;
      const lines = Math.max(0, gap.lines - page.lines.length);
      const before = this.#numberBefore(begin);
      // Estimates the number of lines on either side.
      const above = Math.round(lines * Math.min(1, (number - before) / ((next?.number ?? number) - before)));
      const hasMore = gap.hasMore || lines > 0;
      run.missing = { ...gap, hasMore, lines: above };
      if (next) next.missing = { ...gap, hasMore, lines: lines - above };
    }
    this.#runs.splice(begin, end - begin, run);
    this.#joinRuns();
  }

  /**
   * Evicts lines far from the reader, except the newest.
   *
   * @param reader number of the reader's line; null while following the end
   */
  trim(reader: number | null): void {
    const { reach, tail, margin } = this.#limits;
    const lines = [...this.lines()];
    const at = reader === null ? lines.length : firstWhere(lines, ({ line }) => line >= reader);
    const begin = this.#reached(lines, at, -1, reach);
    const end = this.#reached(lines, at, 1, reach);
    const newest = Math.max(end, this.#reached(lines, lines.length, -1, tail));
    // Avoids many small cuts.
    if (begin + newest - end > margin) this.#keep([begin, end], [newest, lines.length]);
  }

  rowAt(index: number): LogRow | null {
    let at = index;
    for (const [number, run] of this.#runs.entries()) {
      const rows = this.#rowsBefore(number);
      if (at >= 0 && at < rows) return this.#missingRow(number, at - (rows - run.missing.lines));
      const line = run.lines[at - rows];
      if (at >= rows && line) return { kind: 'line', line };
      at -= rows + run.lines.length;
    }
    return null;
  }

  lineAt(index: number): LogLine | null {
    const row = this.rowAt(index);
    return row?.kind === 'line' ? row.line : null;
  }

  /** Number of the line in a row, an estimate if it is missing. */
  numberAt(index: number): number {
    const row = this.rowAt(index);
    return row === null ? this.#lastLine : row.kind === 'line' ? row.line.line : row.line;
  }

  /** Key of a row: stable when the row moves and when its line is loaded. */
  keyAt(index: number): number | string {
    const row = this.rowAt(index);
    if (row === null) return `none ${index}`;
    if (row.kind === 'line') return row.line.line;
    if (this.isDense) return row.line;
    return row.kind === 'more' ? `more ${row.gap.before}` : `${row.gap.before} ${row.gap.lines - row.at}`;
  }

  /** @returns the row of the line with this number, or of the next line */
  indexOfNumber(wanted: number): number {
    let row = 0;
    for (const [at, { lines, missing, number }] of this.#runs.entries()) {
      const rows = this.#rowsBefore(at);
      const before = this.#numberBefore(at);
      if (wanted < number && rows > 0) {
        const share = Math.max(0, wanted - before) / (number - before);
        return (
          row + Math.min(rows - 1, Math.max(0, rows - missing.lines + Math.round(share * (missing.lines + 1)) - 1))
        );
      }
      row += rows;
      const index = firstWhere(lines, ({ line }) => line >= wanted);
      if (index < lines.length) return row + index;
      row += lines.length;
    }
    return row - 1;
  }

  /** @returns the row of the line at this position, or -1 if it is not held */
  indexOf(position: Position): number {
    const index = this.indexFrom(position);
    return this.lineAt(index)?.position === position ? index : -1;
  }

  /** @returns the row of the first held line at or after this position, or -1 */
  indexFrom(position: Position): number {
    return this.indexWhere((line) => comparePositions(line.position, position) >= 0);
  }

  /** @returns the first held line at or after this position, or else the last one */
  nearest(position: Position): LogLine | null {
    const index = this.indexFrom(position);
    return this.lineAt(index < 0 ? this.rowCount - 1 : index);
  }

  /** @returns the row of the first held line for which `reached` is true, or -1. `reached` must be monotonic */
  indexWhere(reached: (line: LogLine) => boolean): number {
    let row = 0;
    for (const [at, { lines }] of this.#runs.entries()) {
      row += this.#rowsBefore(at);
      const index = firstWhere(lines, reached);
      if (index < lines.length) return row + index;
      row += lines.length;
    }
    return -1;
  }

  /** Number of known lines before this position. */
  rankOf(position: Position): number {
    let rank = 0;
    for (const { from, lines, missing } of this.#runs) {
      if (comparePositions(from, position) > 0) break;
      rank += missing.lines + countBefore(lines, position);
    }
    return rank;
  }

  /** Held lines in order. */
  *lines(): Generator<LogLine> {
    for (const { lines } of this.#runs) yield* lines;
  }

  #pushTail(from: Position, missing: Missing): void {
    const tail = this.#runs.at(-1);
    if (tail?.isOpen && tail.lines.length === 0) this.#runs.pop();
    this.#runs.push({ from, to: from, isOpen: true, lines: [], missing, number: this.#lastLine + 1 });
    this.#joinRuns();
  }

  /**
   * Restores the invariants: nothing before the beginning, missing lines counted by their numbers, adjacent runs
   * merged.
   */
  #joinRuns(): void {
    for (let index = 0; index < this.#runs.length; index++) {
      const run = this.#runs[index] as Held;
      run.number = run.lines[0]?.line ?? run.number;
      const before = this.#numberBefore(index);
      if (index === 0 && run.from === ORIGIN) run.missing = NOTHING;
      else if (this.isDense) run.missing = { ...NOTHING, lines: Math.max(0, run.number - before - 1) };
      const above = this.#runs[index - 1];
      if (above === undefined || this.#rowsBefore(index) > 0) continue;
      this.#runs.splice(index - 1, 2, { ...joined(run, above), missing: above.missing });
      index -= 1;
    }
  }

  /** @returns the index `max` lines on; fewer if they are long */
  #reached(lines: readonly LogLine[], from: number, direction: 1 | -1, max: number): number {
    let [at, chars] = [from, 0];
    for (let count = 0; count < max; count++) {
      const line = lines[direction > 0 ? at : at - 1];
      if (line === undefined) break;
      chars += line.message.length;
      if (chars > this.#limits.chars && count >= this.#limits.margin) break;
      at += direction;
    }
    return at;
  }

  /** Evicts all lines except these ranges of indexes among the held lines. */
  #keep(...kept: [number, number][]): void {
    let [offset, missing] = [0, NOTHING];
    this.#runs = this.#runs.flatMap((run) => {
      const { length } = run.lines;
      const parts = kept
        .map(([begin, end]) => [Math.max(0, begin - offset), Math.min(length, end - offset)] as const)
        .filter(([begin, end]) => begin < end || length === 0);
      offset += length;
      missing = together(missing, run.missing);
      let done = 0;
      const runs = (length === 0 ? [[0, 0] as const] : parts).map(([begin, end]): Held => {
        const part = {
          ...run,
          ...(begin > 0 && { from: (run.lines[begin] as LogLine).position, isOpen: false }),
          ...(end < length && { to: (run.lines[end - 1] as LogLine).position }),
          lines: run.lines.slice(begin, end),
          missing: together(missing, { ...NOTHING, lines: begin - done }),
        };
        [done, missing] = [end, NOTHING];
        return part;
      });
      missing = together(missing, { ...NOTHING, lines: length - done });
      return runs;
    });
    this.#joinRuns();
  }

  /** Rows for the lines missing before a run. An unknown number before the first run has no row. */
  #rowsBefore(at: number): number {
    const { lines, hasMore } = (this.#runs[at] as Held).missing;
    return lines + (hasMore && at > 0 ? 1 : 0);
  }

  /** @param nth index among the known missing lines; -1 for the unknown ones */
  #missingRow(at: number, nth: number): LogRow {
    const gap = this.#gapBefore(at);
    const before = this.#numberBefore(at);
    const apart = ((this.#runs[at] as Held).number - before) / (gap.lines + 1);
    const line = before + Math.round(apart * Math.max(1, nth + 1));
    return nth < 0 ? { kind: 'more', line, gap } : { kind: 'missing', line, gap, at: nth };
  }

  #gapBefore(at: number): Gap {
    const { from, isOpen, lines, missing } = this.#runs[at] as Held;
    const before = isOpen ? (lines[0]?.position ?? null) : from;
    return { ...missing, before, after: this.#runs[at - 1]?.to ?? null };
  }

  /** Number of the last line before the gap that precedes a run. */
  #numberBefore(at: number): number {
    const above = this.#runs[at - 1];
    return above === undefined ? this.#firstLine - 1 : (above.lines.at(-1)?.line ?? above.number - 1);
  }
}

function without(missing: Missing, lines: number): Missing {
  return { ...missing, lines: Math.max(0, missing.lines - lines) };
}

function together(one: Missing, other: Missing): Missing {
  return {
    lines: one.lines + other.lines,
    hasMore: one.hasMore || other.hasMore,
    skipped: one.skipped || other.skipped,
  };
}

/** Merges two overlapping runs, each line once. */
function joined(one: Held, other: Held): Held {
  const [early, late] = comparePositions(one.from, other.from) <= 0 ? [one, other] : [other, one];
  const begin = late.lines[0] === undefined ? early.lines.length : countBefore(early.lines, late.lines[0].position);
  const end = late.lines.at(-1);
  const beyond = end === undefined ? [] : early.lines.slice(countUpTo(early.lines, end.position));
  // Overlapping runs contain the same lines, except for lines that arrived after a page was read.
  return {
    ...early,
    to: laterPosition(early.to, late.to),
    lines: [...early.lines.slice(0, begin), ...late.lines, ...beyond],
  };
}

function countBefore(lines: readonly LogLine[], position: Position): number {
  return firstWhere(lines, (line) => comparePositions(line.position, position) >= 0);
}

function countUpTo(lines: readonly LogLine[], position: Position): number {
  return firstWhere(lines, (line) => comparePositions(line.position, position) > 0);
}

function firstWhere<Item>(items: readonly Item[], reached: (item: Item) => boolean): number {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (reached(items[middle] as Item)) high = middle;
    else low = middle + 1;
  }
  return low;
}
