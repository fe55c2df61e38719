import { comparePositions, laterPosition, ORIGIN, type Position } from '@/lib/protocol/position';
import type { LogLine } from '@/lib/protocol/read-models';

/**
 * A stretch of the log that is known whole: `lines` are all of it that match, from `from` to `to`.
 * Lines ascend. `open`: the line at `from` itself is not known.
 */
export interface Run {
  from: Position;
  to: Position;
  open?: boolean;
  lines: LogLine[];
}

interface Segment {
  from: Position;
  to: Position;
  open: boolean;
  lines: LogLine[];
  chars: number;
  /** What follows it was held and has been let go, so that the rest could be held. */
  skipped: boolean;
}

/** Lines between two segments, or beyond the outermost, that are not held. */
export interface Gap {
  /** Before this position, exclusive; null at the end of the log. */
  before: Position | null;
  /** After this one, exclusive; null at its beginning. */
  after: Position | null;
  /** How many there are; null under a filter, where nobody can tell. */
  lines: number | null;
  skipped: boolean;
}

export type LogRow = { kind: 'line'; line: LogLine } | { kind: 'gap'; gap: Gap };

export interface BufferLimits {
  lines: number;
  /** Of all messages together, in UTF-16 code units. */
  chars: number;
  /** Kept on either side of the reader, whatever the rest. */
  margin: number;
  /** The newest, kept whatever the rest. */
  tail: number;
}

export const BUFFER_LIMITS: BufferLimits = { lines: 1_000_000, chars: 256 * 1024 * 1024, margin: 2_000, tail: 1_000 };

/** When it is over its limits, this much of them stays: cuts are few, and each is short. */
const KEPT_SHARE = 0.97;

/**
 * The lines of a log that a page holds: segments in order, gaps between them.
 *
 * Ordering: by position, each line once. Two segments that touch become one.
 */
export class LogBuffer {
  readonly #limits: BufferLimits;
  /** Whether every line matches, so that line numbers tell how many are in a gap. */
  readonly #countable: boolean;
  #segments: Segment[] = [];
  /** Everything that came live up to here is in it. */
  #liveTo: Position = ORIGIN;
  #firstLine = 1;
  #lastLine = 0;

  constructor(countable: boolean, limits: BufferLimits = BUFFER_LIMITS) {
    this.#countable = countable;
    this.#limits = limits;
  }

  get lineCount(): number {
    return this.#segments.reduce((sum, { lines }) => sum + lines.length, 0);
  }

  /** Lines, and the gaps between them. What is missing at either end is no row. */
  get rowCount(): number {
    return this.lineCount + Math.max(0, this.#segments.length - 1);
  }

  get liveTo(): Position {
    return this.#liveTo;
  }

  /** What is older than all that is held. */
  get older(): Gap | null {
    const first = this.#segments[0];
    if (!first || first.from === ORIGIN) return null;
    const held = first.lines[0];
    const lines = this.#countable && held ? held.line - this.#firstLine : null;
    if (lines !== null && lines <= 0) return null;
    return { before: beginOf(first), after: null, lines, skipped: false };
  }

  /** What is newer than all that is held. */
  get newer(): Gap | null {
    const last = this.#segments.at(-1);
    if (!last || comparePositions(last.to, this.#liveTo) >= 0) return null;
    const held = last.lines.at(-1);
    const lines = this.#countable && held ? Math.max(0, this.#lastLine - held.line) : null;
    return { before: null, after: last.to, lines, skipped: last.skipped };
  }

  /** What the log has, by the numbers of its lines. */
  extend(firstLine: number, lastLine: number): void {
    this.#firstLine = Math.max(this.#firstLine, firstLine);
    this.#lastLine = Math.max(this.#lastLine, lastLine);
  }

  /** The stream begins here: what comes live comes after it. */
  beginLive(position: Position): void {
    this.#liveTo = laterPosition(this.#liveTo, position);
  }

  /** What came live: everything that matches up to `to`. */
  append(lines: readonly LogLine[], to: Position): void {
    const last = this.#segments.at(-1);
    const newest = lines.at(-1);
    if (newest) this.#lastLine = Math.max(this.#lastLine, newest.line);
    if (last && comparePositions(last.to, this.#liveTo) >= 0) {
      for (const line of lines) {
        if (comparePositions(line.position, last.to) <= 0) continue;
        last.lines.push(line);
        last.chars += line.message.length;
      }
      last.to = laterPosition(last.to, to);
    } else {
      this.#segments.push(segmentOf({ from: this.#liveTo, to, open: true, lines: [...lines] }));
    }
    this.#liveTo = laterPosition(this.#liveTo, to);
  }

  /** What came live up to `to` is not held, though it may match. */
  skipLive(to: Position): void {
    const last = this.#segments.at(-1);
    if (last) last.skipped = true;
    this.#liveTo = laterPosition(this.#liveTo, to);
  }

  /** A page, wherever it belongs. */
  insert(run: Run): void {
    const before = this.#segments.filter((segment) => comparePositions(segment.to, run.from) < 0);
    const after = this.#segments.filter((segment) => comparePositions(segment.from, run.to) > 0);
    const touched = this.#segments.slice(before.length, this.#segments.length - after.length);
    this.#segments = [...before, joined(segmentOf(run), touched), ...after];
    const newest = run.lines.at(-1);
    if (newest) this.#lastLine = Math.max(this.#lastLine, newest.line);
  }

  rowAt(index: number): LogRow | null {
    let at = index;
    for (const [number, segment] of this.#segments.entries()) {
      const line = segment.lines[at];
      if (at >= 0 && line) return { kind: 'line', line };
      at -= segment.lines.length;
      if (at === 0 && number < this.#segments.length - 1) return { kind: 'gap', gap: this.#gapAfter(number) };
      at -= 1;
    }
    return null;
  }

  /** The row's identity: it stays the same wherever the row moves. */
  keyAt(index: number): string {
    let at = index;
    for (const { lines, to } of this.#segments) {
      const line = lines[at];
      if (at >= 0 && line) return line.position;
      at -= lines.length;
      if (at === 0) return `gap ${to}`;
      at -= 1;
    }
    return String(index);
  }

  /** @returns the row of the line at this position, or -1 */
  indexOf(position: Position): number {
    const index = this.indexFrom(position);
    return this.lineAt(index)?.position === position ? index : -1;
  }

  /** @returns the row of the first line at this position or after it, or -1 */
  indexFrom(position: Position): number {
    return this.indexWhere((line) => comparePositions(line.position, position) >= 0);
  }

  /** @returns the row of the first line for which `reached` is true, given that it stays true from there on, or -1 */
  indexWhere(reached: (line: LogLine) => boolean): number {
    let row = 0;
    for (const { lines } of this.#segments) {
      const last = lines.at(-1);
      if (last && reached(last)) return row + firstWhere(lines, reached);
      row += lines.length + 1;
    }
    return -1;
  }

  /** How many lines stand before this position. */
  rankOf(position: Position): number {
    const reached = (line: LogLine) => comparePositions(line.position, position) >= 0;
    return this.#segments.reduce((sum, { lines }) => sum + firstWhere(lines, reached), 0);
  }

  /** Whether there may be matching lines that are not held. */
  get hasGaps(): boolean {
    return this.#segments.length > 1 || this.older !== null || this.newer !== null;
  }

  lineAt(index: number): LogLine | null {
    const row = this.rowAt(index);
    return row?.kind === 'line' ? row.line : null;
  }

  /** Every line held, in order. */
  *lines(): Generator<LogLine> {
    for (const { lines } of this.#segments) yield* lines;
  }

  /**
   * Lets go of lines until the rest is within the limits: the oldest while the reader follows the end, else what is
   * farthest from where they read.
   *
   * @param anchor the line they read at; null while they follow the end
   */
  trim(anchor: Position | null): void {
    const { lines, chars } = this.#limits;
    if (this.lineCount <= lines && this.#chars <= chars) return;
    const surplus = { lines: this.lineCount - lines * KEPT_SHARE, chars: this.#chars - chars * KEPT_SHARE };
    while (surplus.lines > 0 || surplus.chars > 0) {
      const victim = this.#victim(anchor);
      if (victim === null) return;
      this.#drop(victim, surplus);
    }
  }

  get #chars(): number {
    return this.#segments.reduce((sum, segment) => sum + segment.chars, 0);
  }

  #victim(anchor: Position | null): Victim | null {
    const { margin, tail } = this.#limits;
    const lastNumber = this.#segments.length - 1;
    const keptOf = (number: number) => (number === lastNumber ? tail : 0);
    const place = anchor === null ? { number: lastNumber, at: Number.MAX_SAFE_INTEGER } : this.#placeOf(anchor);
    for (let number = lastNumber; number >= place.number; number--) {
      const length = (this.#segments[number] as Segment).lines.length;
      const end = length - keptOf(number);
      const begin = number === place.number ? place.at + margin : 0;
      if (begin < end) return { number, begin, end, newestFirst: true };
    }
    for (let number = 0; number <= place.number; number++) {
      const length = (this.#segments[number] as Segment).lines.length;
      const kept = number === place.number ? place.at - margin : length;
      const end = Math.min(kept, length - keptOf(number));
      if (end > 0) return { number, begin: 0, end, newestFirst: false };
    }
    return null;
  }

  #placeOf(anchor: Position): { number: number; at: number } {
    const reached = (line: LogLine) => comparePositions(line.position, anchor) >= 0;
    for (const [number, { lines }] of this.#segments.entries()) {
      const last = lines.at(-1);
      if (last && reached(last)) return { number, at: firstWhere(lines, reached) };
    }
    return { number: this.#segments.length - 1, at: Number.MAX_SAFE_INTEGER };
  }

  /** Cuts as much of the victim as there is too much, at once: each cut moves what is after it. */
  #drop({ number, begin, end, newestFirst }: Victim, surplus: { lines: number; chars: number }): void {
    const segment = this.#segments[number] as Segment;
    const { lines, to, skipped } = segment;
    let dropped = 0;
    let chars = 0;
    while (dropped < end - begin && (surplus.lines > 0 || surplus.chars > 0)) {
      const { message } = lines[newestFirst ? end - 1 - dropped : begin + dropped] as LogLine;
      dropped += 1;
      chars += message.length;
      surplus.lines -= 1;
      surplus.chars -= message.length;
    }
    const [from, until] = newestFirst ? [end - dropped, end] : [begin, begin + dropped];
    const rest = from === 0 ? null : lines.splice(until);
    lines.splice(from, dropped);
    segment.chars -= chars;
    const above = this.#segments[number - 1];
    if (rest === null) {
      const first = lines[0];
      if (first === undefined) this.#segments.splice(number, 1);
      else Object.assign(segment, { from: first.position, open: false });
      if (above) above.skipped = true;
      return;
    }
    const restChars = charsOf(rest);
    Object.assign(segment, { to: lines.at(-1)?.position, chars: segment.chars - restChars, skipped: true });
    const first = rest[0];
    if (first === undefined) return;
    const below = { from: first.position, to, open: false, lines: rest, chars: restChars, skipped };
    this.#segments.splice(number + 1, 0, below);
  }

  #gapAfter(number: number): Gap {
    const [above, below] = [this.#segments[number] as Segment, this.#segments[number + 1] as Segment];
    const [last, first] = [above.lines.at(-1), below.lines[0]];
    return {
      after: above.to,
      before: beginOf(below),
      lines: this.#countable && last && first ? first.line - last.line - 1 : null,
      skipped: above.skipped,
    };
  }
}

/** A stretch of a segment's lines that may go, up to `end`. */
interface Victim {
  number: number;
  begin: number;
  end: number;
  /** Which end of it is the farther from the reader. */
  newestFirst: boolean;
}

/** What `before` has to say to get what is older. */
function beginOf({ from, to, open, lines }: Segment): Position {
  return open ? (lines[0]?.position ?? to) : from;
}

function segmentOf({ from, to, open = false, lines }: Run): Segment {
  return { from, to, open, lines, chars: charsOf(lines), skipped: false };
}

function charsOf(lines: readonly LogLine[]): number {
  return lines.reduce((sum, { message }) => sum + message.length, 0);
}

/** One segment of all that touch. `touched` is in order; what is held may be long, a page is not. */
function joined(run: Segment, touched: readonly Segment[]): Segment {
  const [first, last] = [touched[0], touched.at(-1)];
  if (!first || !last) return run;
  const earliest = comparePositions(first.from, run.from) < 0 ? first : run;
  const latest = comparePositions(last.to, run.to) > 0 ? last : run;
  const { from, open } = earliest;
  let { lines, chars } = first;
  for (const segment of touched.slice(1)) ({ lines, chars } = merged({ lines, chars }, segment));
  ({ lines, chars } = merged({ lines, chars }, run));
  return { from, to: latest.to, open, lines, chars, skipped: latest === last && last.skipped };
}

type Lines = Pick<Segment, 'lines' | 'chars'>;

/** Both in order, each line once. Where they overlap, only those of the long one that are in the way are looked at. */
function merged(one: Lines, other: Lines): Lines {
  const [long, short] = one.lines.length >= other.lines.length ? [one, other] : [other, one];
  const [head, tail] = [short.lines[0], short.lines.at(-1)];
  if (!head || !tail) return long;
  const begin = firstWhere(long.lines, ({ position }) => comparePositions(position, head.position) >= 0);
  const end = firstWhere(long.lines, ({ position }) => comparePositions(position, tail.position) > 0);
  const overlap = long.lines.slice(begin, end);
  const between = overlap.length === 0 ? short.lines : zipped(overlap, short.lines);
  const chars = long.chars + charsOf(between) - charsOf(overlap);
  if (end === long.lines.length) {
    long.lines.length = begin;
    for (const line of between) long.lines.push(line);
    return { lines: long.lines, chars };
  }
  const lines = long.lines.slice(0, begin).concat(between, end === 0 ? long.lines : long.lines.slice(end));
  return { lines, chars };
}

function zipped(held: readonly LogLine[], others: readonly LogLine[]): LogLine[] {
  const lines: LogLine[] = [];
  let [left, right] = [0, 0];
  while (left < held.length || right < others.length) {
    const [mine, theirs] = [held[left], others[right]];
    const order = !mine ? 1 : !theirs ? -1 : comparePositions(mine.position, theirs.position);
    lines.push((order <= 0 ? mine : theirs) as LogLine);
    if (order <= 0) left += 1;
    if (order >= 0) right += 1;
  }
  return lines;
}

function firstWhere(lines: readonly LogLine[], reached: (line: LogLine) => boolean): number {
  let [low, high] = [0, lines.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (reached(lines[middle] as LogLine)) high = middle;
    else low = middle + 1;
  }
  return low;
}
