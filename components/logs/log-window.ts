import { comparePositions, laterPosition, ORIGIN, type Position } from '@interlude/protocol/position';
import type { LogLine } from '@interlude/protocol/read-models';

/** A stretch of the log that is known whole: `lines` are all of it that match, from `from` to `to`, ascending. */
export interface Run {
  from: Position;
  to: Position;
  lines: LogLine[];
}

/** What is not held before a run. */
interface Missing {
  /** So many lines are known to be there. */
  lines: number;
  /** There may be more of them. */
  hasMore: boolean;
  /** What came was more than could be looked through: it waits to be asked for. */
  skipped: boolean;
}

export interface Gap extends Missing {
  /** After this position, exclusive; null at the beginning of the log. */
  after: Position | null;
  /** Before this one, exclusive; null at its end, while nothing has come live. */
  before: Position | null;
}

/**
 * What stands in a row: a line, one that is not held but known to be there, or a place where nobody knows how many are
 * missing. `line` is a line's number; of one that is not held by a filter, about that.
 */
export type LogRow = { kind: 'line'; line: LogLine } | MissingRow;
/** `at`: which one of its gap. */
export type MissingRow =
  | { kind: 'missing'; line: number; gap: Gap; at: number }
  | { kind: 'more'; line: number; gap: Gap };

export interface WindowLimits {
  /** Lines held on either side of the reader. */
  reach: number;
  /** Held on either side, however long they are. */
  margin: number;
  /** The newest lines, held wherever the reader is. */
  tail: number;
  /** Of the messages of either side and of the tail, in UTF-16 code units. */
  chars: number;
}

/** Ten pages around the reader, of which a line may have 64 KiB, and what is as high as any screen. */
export const WINDOW_LIMITS: WindowLimits = { reach: 2_500, margin: 150, tail: 1_000, chars: 4 * 1024 * 1024 };

const NOTHING: Missing = { lines: 0, hasMore: false, skipped: false };
const UNKNOWN: Missing = { ...NOTHING, hasMore: true };

interface Held extends Run {
  /** Whether the line at `from` itself is not known. */
  isOpen: boolean;
  /** Between the run before it, or the beginning of the log, and this one. */
  missing: Missing;
  /** That its first line has or will have. */
  number: number;
}

/**
 * The lines of a log that a page holds: runs in order, the last of which is the tail, that grows live. Its rows span the
 * whole log, as far as it is known.
 *
 * Ordering: by position, each line once. Runs with nothing between them become one.
 * Failure: what is let go of stays a row; there is no gap without a row, but the one before all.
 */
export class LogWindow {
  readonly #limits: WindowLimits;
  /** Whether every line matches: then line numbers tell how many are missing. */
  readonly #isDense: boolean;
  #runs: Held[] = [];
  #firstLine = 1;
  #lastLine = 0;

  constructor(isDense: boolean, limits: WindowLimits = WINDOW_LIMITS) {
    this.#isDense = isDense;
    this.#limits = limits;
  }

  /** Lines that are held. */
  get heldCount(): number {
    return this.#runs.reduce((sum, { lines }) => sum + lines.length, 0);
  }

  /** Lines that are known to match, held or not. */
  get lineCount(): number {
    return this.#runs.reduce((sum, { lines, missing }) => sum + missing.lines + lines.length, 0);
  }

  get rowCount(): number {
    return this.#runs.reduce((sum, run, at) => sum + this.#rowsBefore(at) + run.lines.length, 0);
  }

  /** Whether there may be lines that match beyond those. */
  get hasMore(): boolean {
    return this.#runs.some(({ missing }) => missing.hasMore);
  }

  /** What is older than all rows; null when the first of them is the beginning of the log. */
  get older(): Gap | null {
    return this.#runs[0]?.missing.hasMore ? this.#gapBefore(0) : null;
  }

  /** What the log has, by the numbers of its lines. */
  extend(firstLine: number, lastLine: number): void {
    this.#firstLine = Math.max(this.#firstLine, firstLine);
    this.#lastLine = Math.max(this.#lastLine, lastLine);
  }

  /** The stream begins here: what comes live comes after it. */
  beginLive(position: Position): void {
    const tail = this.#runs.at(-1);
    if (tail && comparePositions(tail.to, position) >= 0) return;
    this.#pushTail(position, UNKNOWN);
  }

  /** What came live: everything that matches up to `to`. */
  append(lines: readonly LogLine[], to: Position): void {
    const tail = this.#runs.at(-1);
    if (tail === undefined) return;
    for (const line of lines) if (comparePositions(line.position, tail.to) > 0) tail.lines.push(line);
    tail.to = laterPosition(tail.to, to);
    this.extend(0, tail.lines.at(-1)?.line ?? 0);
    this.#joinRuns();
  }

  /** What came live up to `to` is not held, though it may match. */
  skipLive(to: Position): void {
    this.#pushTail(to, { ...UNKNOWN, skipped: true });
  }

  /** A page, wherever it belongs. */
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
      // how many of them are on which side is a guess
      const above = Math.round(lines * Math.min(1, (number - before) / ((next?.number ?? number) - before)));
      const hasMore = gap.hasMore || lines > 0;
      run.missing = { ...gap, hasMore, lines: above };
      if (next) next.missing = { ...gap, hasMore, lines: lines - above };
    }
    this.#runs.splice(begin, end - begin, run);
    this.#joinRuns();
  }

  /**
   * Lets go of what is far from the reader, but for the newest lines.
   *
   * @param reader the number of the line they are at; null while they follow the end
   */
  trim(reader: number | null): void {
    const { reach, tail, margin } = this.#limits;
    const lines = [...this.lines()];
    const at = reader === null ? lines.length : firstWhere(lines, ({ line }) => line >= reader);
    const begin = this.#reached(lines, at, -1, reach);
    const end = this.#reached(lines, at, 1, reach);
    const newest = Math.max(end, this.#reached(lines, lines.length, -1, tail));
    // cuts are few
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

  /** The number of the line in a row, or about that. */
  numberAt(index: number): number {
    const row = this.rowAt(index);
    return row === null ? this.#lastLine : row.kind === 'line' ? row.line.line : row.line;
  }

  /** The row's identity: it stays the same wherever the row moves, and when its line comes. */
  keyAt(index: number): number | string {
    const row = this.rowAt(index);
    if (row === null) return `none ${index}`;
    if (row.kind === 'line') return row.line.line;
    if (this.#isDense) return row.line;
    return row.kind === 'more' ? `more ${row.gap.before}` : `${row.gap.before} ${row.gap.lines - row.at}`;
  }

  /** @returns the row of the line with this number, or of the next one there is */
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

  /** @returns the row of the line at this position, or -1 while that is not held */
  indexOf(position: Position): number {
    const index = this.indexFrom(position);
    return this.lineAt(index)?.position === position ? index : -1;
  }

  /** @returns the row of the first line held at this position or after it, or -1 */
  indexFrom(position: Position): number {
    return this.indexWhere((line) => comparePositions(line.position, position) >= 0);
  }

  /** @returns the row of the first line held for which `reached` is true, given that it stays true from there on, or -1 */
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

  /** How many lines are known to stand before this position. */
  rankOf(position: Position): number {
    let rank = 0;
    for (const { from, lines, missing } of this.#runs) {
      if (comparePositions(from, position) > 0) break;
      rank += missing.lines + countBefore(lines, position);
    }
    return rank;
  }

  /** Every line held, in order. */
  *lines(): Generator<LogLine> {
    for (const { lines } of this.#runs) yield* lines;
  }

  #pushTail(from: Position, missing: Missing): void {
    const tail = this.#runs.at(-1);
    if (tail?.isOpen && tail.lines.length === 0) this.#runs.pop();
    this.#runs.push({ from, to: from, isOpen: true, lines: [], missing, number: this.#lastLine + 1 });
    this.#joinRuns();
  }

  /** The beginning has nothing before it, line numbers tell how many are missing, and runs that touch become one. */
  #joinRuns(): void {
    for (let at = 0; at < this.#runs.length; at++) {
      const run = this.#runs[at] as Held;
      run.number = run.lines[0]?.line ?? run.number;
      const before = this.#numberBefore(at);
      if (at === 0 && run.from === ORIGIN) run.missing = NOTHING;
      else if (this.#isDense) run.missing = { ...NOTHING, lines: Math.max(0, run.number - before - 1) };
      const above = this.#runs[at - 1];
      if (above === undefined || this.#rowsBefore(at) > 0) continue;
      this.#runs.splice(at - 1, 2, { ...joined(run, above), missing: above.missing });
      at -= 1;
    }
  }

  /** @returns how far `most` lines reach from there, or as many as are not too long */
  #reached(lines: readonly LogLine[], from: number, way: 1 | -1, most: number): number {
    let [at, chars] = [from, 0];
    for (let count = 0; count < most; count++) {
      const line = lines[way > 0 ? at : at - 1];
      if (line === undefined) break;
      chars += line.message.length;
      if (chars > this.#limits.chars && count >= this.#limits.margin) break;
      at += way;
    }
    return at;
  }

  /** Lets go of every line but those, by their places among all that are held. */
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

  /** Rows of what is missing before a run. What nobody knows of before the first is none: it has no end to stand at. */
  #rowsBefore(at: number): number {
    const { lines, hasMore } = (this.#runs[at] as Held).missing;
    return lines + (hasMore && at > 0 ? 1 : 0);
  }

  /** @param nth of the lines that are known to be missing; -1 for what is not known */
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

  /** The number of the last line before what is missing before a run. */
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

/** One run of two that touch: in order, each line once. */
function joined(one: Held, other: Held): Held {
  const [early, late] = comparePositions(one.from, other.from) <= 0 ? [one, other] : [other, one];
  const begin = late.lines[0] === undefined ? early.lines.length : countBefore(early.lines, late.lines[0].position);
  const end = late.lines.at(-1);
  const beyond = end === undefined ? [] : early.lines.slice(countUpTo(early.lines, end.position));
  // where both know a stretch they know the same of it, but for what was not there yet when the page was read
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
