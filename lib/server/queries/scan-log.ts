import { positionToNumber } from '@interlude/protocol/position';
import { EVERY_LINE, type LogFilter, matchesLine } from '@interlude/protocol/projections/log-filter';
import type { LogLine } from '@interlude/protocol/read-models';
import { redactLine } from '@interlude/protocol/redaction/redact-model';
import type { Row } from '@libsql/client';
import { logLineFromRow } from '@/db/log-rows';
import { Yielder } from '@/db/yield-to-loop';
import type { Sight } from '@/lib/server/access/sight';
import { type ChunkRegion, chunkNear, readChunkRegion, readChunkWindow } from './log-chunks';
import { conditionOf } from './log-condition';
import { isCut, type Slice, selectInChunks, selectSpan } from './log-slices';
import { storedFilter } from './search-shown';

export interface ScanRange {
  direction: 'older' | 'newer';
  /** Where to begin: only lines after this position, in the direction of the scan. */
  edge: number;
  /** Lines newer than this are skipped: they came after the scan began. */
  newest: number;
  /** Most lines. */
  limit: number;
  /** Most bytes of messages, give or take one line. */
  bytes: number;
  /** How long the scan may keep the event loop busy, before it judges the lines it has; Infinity to scan to the end. */
  budgetMs: number;
}

export interface LogScan {
  /** In the order of the scan. */
  lines: LogLine[];
  /** Why it ended: there is nothing further on, it has as much as was wanted, or its time is over. */
  end: 'log' | 'full' | 'time';
  /** `lines` has every line that matches up to this position, in the direction of the scan. */
  searchedTo: number;
}

/** How much one statement reads: little at first, then as much as possible without holding up others. */
const FIRST_SPAN = 128;
const LARGEST_SPAN = 4096;
const FIRST_CHUNKS = 4;
const STATEMENT_MS = 8;
const UTF8 = new TextEncoder();

/** Where a scan reads, and whether its reader is redacted. */
type ScanSight = Pick<Sight, 'reader' | 'redacts'>;

/**
 * Searches a log for matching lines from a position on, a slice at a time: chunk by chunk where lines are indexed, and
 * every line of the newest, which are not yet. For a redacted reader, a line matches if its redacted form does: the
 * database then judges no text.
 *
 * Ordering: by position, upwards or downwards.
 * Failure: throws what the database throws. Each slice is a separate read: lines that retention removes meanwhile are
 * not found, but its marker is.
 */
export async function scanLog(
  sight: ScanSight,
  agentId: string,
  filter: LogFilter,
  range: ScanRange,
): Promise<LogScan> {
  const scan = new Scan(sight, agentId, filter, range);
  const region = scan.readsAll ? null : await readChunkRegion(sight.reader, agentId);
  const parts =
    region === null
      ? [() => scan.readSpans(0, range.newest)]
      : [
          () => scan.readChunks(region),
          // the newest lines are in no chunk yet
          () => scan.readSpans(region.last.lastPosition + 1, range.newest),
        ];
  if (range.direction === 'older') parts.reverse();
  for (const part of parts) {
    const end = await part();
    if (end !== 'log') return scan.result(end);
  }
  return scan.result('log');
}

class Scan {
  readonly #reader: Sight['reader'];
  readonly #filter: LogFilter;
  /** What of the filter the database judges. */
  readonly #stored: LogFilter;
  readonly #range: ScanRange;
  readonly #slice: Omit<Slice, 'edge' | 'limit'>;
  readonly #lines: LogLine[] = [];
  #edge: number;
  #bytes = 0;
  readonly #pace = new Yielder();
  #busyMs = 0;
  #busySince = performance.now();

  constructor({ reader, redacts }: ScanSight, agentId: string, filter: LogFilter, range: ScanRange) {
    this.#reader = reader;
    this.#filter = filter;
    this.#stored = redacts ? storedFilter(filter) : filter;
    this.#range = range;
    this.#edge = range.edge;
    const condition = conditionOf(this.#stored);
    this.#slice = { agentId, direction: range.direction, low: 0, high: range.newest, condition };
  }

  /** Whether the database leaves no line out. */
  get readsAll(): boolean {
    return isEveryLine(this.#stored);
  }

  /** Whether lines are judged by their redacted form. */
  get #isRedacted(): boolean {
    return this.#stored !== this.#filter;
  }

  result(end: LogScan['end']): LogScan {
    return { lines: this.#lines, end, searchedTo: this.#edge };
  }

  /** Every line between two positions. */
  async readSpans(low: number, high: number): Promise<LogScan['end']> {
    // if every line is wanted, every line read is a find
    let span = isEveryLine(this.#filter) ? Math.min(this.#range.limit, LARGEST_SPAN) : FIRST_SPAN;
    for (;;) {
      const busyMs = this.#busyMs;
      const limit = this.#mostRows(span);
      const statements = selectSpan({ ...this.#slice, low, high, edge: this.#edge, limit }, span);
      const [reach, found] = await this.#reader.batch(statements, 'read');
      const rows = found?.rows ?? [];
      const end = await this.#take(rows);
      if (end !== null) return end;
      const seen = Number(reach?.rows[0]?.seen ?? 0);
      const last = rows.at(-1);
      const hasMore = isCut(rows, limit);
      if (hasMore) this.#edge = Number(last?.position);
      else if (seen > 0) this.#edge = Number(reach?.rows[0]?.edge);
      if (!hasMore && seen < span) return 'log';
      span = await this.#nextSize(busyMs, span, LARGEST_SPAN);
      if (this.#isOver()) return 'time';
    }
  }

  /** The lines of the chunks that may have matches. */
  async readChunks(region: ChunkRegion): Promise<LogScan['end']> {
    const { direction } = this.#range;
    const isOlder = direction === 'older';
    if (isOlder ? this.#edge <= region.first.firstPosition : this.#edge >= region.last.lastPosition) return 'log';
    let from: number | null = await chunkNear(this.#reader, this.#slice.agentId, region, direction, this.#edge);
    let count = FIRST_CHUNKS;
    while (from !== null) {
      const { found, edge, next } = await readChunkWindow(this.#reader, region, this.#stored, direction, from);
      await this.#giveTurn();
      for (let at = 0; at < found.length; ) {
        const busyMs = this.#busyMs;
        const some = found.slice(at, at + count);
        const limit = this.#mostRows(Number.MAX_SAFE_INTEGER);
        const { rows } = await this.#reader.execute(selectInChunks({ ...this.#slice, edge: this.#edge, limit }, some));
        const end = await this.#take(rows);
        if (end !== null) return end;
        const last = rows.at(-1);
        if (isCut(rows, limit) && last !== undefined) {
          // some did not match after all, or they are long: the same chunks have more
          this.#edge = Number(last.position);
        } else {
          at += some.length;
          this.#goBeyond(some.at(-1));
        }
        count = await this.#nextSize(busyMs, count, found.length);
        if (this.#isOver()) return 'time';
      }
      this.#goBeyond(edge ?? undefined);
      from = next;
      if (from !== null && this.#isOver()) return 'time';
    }
    return 'log';
  }

  /** All lines up to the end of a chunk have been read. */
  #goBeyond(chunk: { firstPosition: number; lastPosition: number } | undefined): void {
    if (chunk === undefined) return;
    if (this.#range.direction === 'older') this.#edge = Math.min(this.#edge, chunk.firstPosition);
    else this.#edge = Math.max(this.#edge, chunk.lastPosition);
  }

  /**
   * The database judges neither a regex nor redacted text: every line that passes its other conditions has to be read.
   */
  #mostRows(all: number): number {
    const isJudged = this.#filter.regex === null && !this.#isRedacted;
    return isJudged ? this.#range.limit - this.#lines.length : all;
  }

  /**
   * Judges line by line, with turns for others in between: a regex may take milliseconds for one line. The time the
   * database took does not end this: its rows are here, and dropping them would leave a page short.
   *
   * @returns why to end here; null to go on
   */
  async #take(rows: readonly Row[]): Promise<'full' | 'time' | null> {
    this.#countTime();
    const busyMs = this.#busyMs;
    for (const row of rows) {
      const line = logLineFromRow(row);
      const shown = this.#isRedacted ? redactLine(line) : line;
      if (matchesLine(this.#filter, shown)) {
        this.#lines.push(line);
        this.#bytes += this.#isRedacted ? UTF8.encode(shown.message).byteLength : Number(row.size);
        if (this.#lines.length >= this.#range.limit || this.#bytes >= this.#range.bytes) {
          this.#edge = positionToNumber(line.position);
          return 'full';
        }
      }
      if (!this.#pace.isDue) continue;
      await this.#giveTurn();
      if (this.#busyMs - busyMs >= this.#range.budgetMs) {
        this.#edge = positionToNumber(line.position);
        return 'time';
      }
    }
    return null;
  }

  /** Gives others their turn. @returns how much to read next, judged by how long the last slice took */
  async #nextSize(busyMs: number, size: number, largest: number): Promise<number> {
    await this.#giveTurn();
    const tookMs = this.#busyMs - busyMs;
    if (tookMs < STATEMENT_MS / 2) return Math.min(size * 2, Math.max(largest, 1));
    return tookMs > STATEMENT_MS ? Math.max(size >> 1, 1) : size;
  }

  /** Time that others take does not count for the scan. */
  async #giveTurn(): Promise<void> {
    this.#countTime();
    await this.#pace.turn();
    this.#busySince = performance.now();
  }

  #countTime(): void {
    const now = performance.now();
    this.#busyMs += now - this.#busySince;
    this.#busySince = now;
  }

  #isOver(): boolean {
    return this.#busyMs >= this.#range.budgetMs;
  }
}

function isEveryLine(filter: LogFilter): boolean {
  return (Object.keys(EVERY_LINE) as (keyof LogFilter)[]).every((key) => {
    const value = filter[key];
    return Array.isArray(value) ? value.length === 0 : value === null;
  });
}
