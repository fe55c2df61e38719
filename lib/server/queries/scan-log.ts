import { positionToNumber } from '@interlude/protocol/position';
import { EVERY_LINE, type LogFilter, matchesLine } from '@interlude/protocol/projections/log-filter';
import type { LogLine } from '@interlude/protocol/read-models';
import { redactLine } from '@interlude/protocol/redaction/redact-model';
import type { Row } from '@libsql/client';
import { logLineFromRow } from '@/db/log-rows';
import { Yielder } from '@/db/yield-to-loop';
import type { ReadScope } from '@/lib/server/access/request-context';
import {
  type ChunkRegion,
  chunkNear,
  isCut,
  readChunkRegion,
  readChunkWindow,
  type Slice,
  selectInChunks,
  selectSpan,
} from './log-chunks';
import { lineCondition } from './log-conditions';
import { databaseFilter } from './search-pages';

export interface ScanRange {
  direction: 'older' | 'newer';
  /** Reads only lines after this position, in the direction of the scan. */
  edge: number;
  /** Upper bound: newer lines arrived after the scan began, and are skipped. */
  newest: number;
  limit: number;
  /** Maximum bytes of messages, exceeded by one line at most. */
  bytes: number;
  /** Milliseconds on the event loop; Infinity to scan to the end. */
  budgetMs: number;
}

export interface LogScan {
  /** In the order of the scan. */
  lines: LogLine[];
  /** Reason for the end of the scan: the end of the log, a full page, or the end of the time budget. */
  end: 'log' | 'full' | 'time';
  /** `lines` has every match up to this position, in the direction of the scan. */
  searchedTo: number;
}

/** Initial lines and chunks per statement. Both grow while a statement stays below STATEMENT_MS. */
const FIRST_SPAN = 128;
const LARGEST_SPAN = 4096;
const FIRST_CHUNKS = 4;
const STATEMENT_MS = 8;
const UTF8 = new TextEncoder();

type ScanView = Pick<ReadScope, 'reader' | 'redacts'>;

/**
 * Searches a log for matching lines, a slice at a time: by chunks where lines are indexed, and line by line in the
 * newest part, which is not indexed yet. For a redacted reader, the redacted line must match, so the database compares
 * no text.
 *
 * Ordering: by position, ascending or descending.
 * Failure: throws the database's errors. Each slice is a separate read, so for lines that retention removes meanwhile
 * the scan finds only the marker.
 */
export async function scanLog(view: ScanView, agentId: string, filter: LogFilter, range: ScanRange): Promise<LogScan> {
  const scan = new Scan(view, agentId, filter, range);
  const region = scan.readsAll ? null : await readChunkRegion(view.reader, agentId);
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
  readonly #reader: ReadScope['reader'];
  readonly #filter: LogFilter;
  /** The part of the filter that the database applies. */
  readonly #stored: LogFilter;
  readonly #range: ScanRange;
  readonly #slice: Omit<Slice, 'edge' | 'limit'>;
  readonly #lines: LogLine[] = [];
  #edge: number;
  #bytes = 0;
  readonly #yielder = new Yielder();
  #busyMs = 0;
  #busySince = performance.now();

  constructor({ reader, redacts }: ScanView, agentId: string, filter: LogFilter, range: ScanRange) {
    this.#reader = reader;
    this.#filter = filter;
    this.#stored = redacts ? databaseFilter(filter) : filter;
    this.#range = range;
    this.#edge = range.edge;
    const condition = lineCondition(this.#stored);
    this.#slice = { agentId, direction: range.direction, low: 0, high: range.newest, condition };
  }

  /** True if the database filters nothing. */
  get readsAll(): boolean {
    return isEveryLine(this.#stored);
  }

  /** True if the redacted form of a line must match. */
  get #isRedacted(): boolean {
    return this.#stored !== this.#filter;
  }

  result(end: LogScan['end']): LogScan {
    return { lines: this.#lines, end, searchedTo: this.#edge };
  }

  /** Scans every line between two positions. */
  async readSpans(low: number, high: number): Promise<LogScan['end']> {
    // Without a filter, every line read is a match.
    let span = isEveryLine(this.#filter) ? Math.min(this.#range.limit, LARGEST_SPAN) : FIRST_SPAN;
    for (;;) {
      const busyMs = this.#busyMs;
      const limit = this.#mostRows(span);
      const statements = selectSpan({ ...this.#slice, low, high, edge: this.#edge, limit }, span);
      const [reach, found] = await this.#reader.batch(statements, 'read');
      const rows = found?.rows ?? [];
      const end = await this.#filterRows(rows);
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

  /** Scans the lines of chunks that may hold matches. */
  async readChunks(region: ChunkRegion): Promise<LogScan['end']> {
    const { direction } = this.#range;
    const isOlder = direction === 'older';
    if (isOlder ? this.#edge <= region.first.firstPosition : this.#edge >= region.last.lastPosition) return 'log';
    let from: number | null = await chunkNear(this.#reader, this.#slice.agentId, region, direction, this.#edge);
    let count = FIRST_CHUNKS;
    while (from !== null) {
      const { found, edge, next } = await readChunkWindow(this.#reader, region, this.#stored, direction, from);
      await this.#yield();
      for (let index = 0; index < found.length; ) {
        const busyMs = this.#busyMs;
        const some = found.slice(index, index + count);
        const limit = this.#mostRows(Number.MAX_SAFE_INTEGER);
        const { rows } = await this.#reader.execute(selectInChunks({ ...this.#slice, edge: this.#edge, limit }, some));
        const end = await this.#filterRows(rows);
        if (end !== null) return end;
        const last = rows.at(-1);
        if (isCut(rows, limit) && last !== undefined) {
          // The statement reached its limit of bytes or rows, so the same chunks may hold more lines.
          this.#edge = Number(last.position);
        } else {
          index += some.length;
          this.#moveEdgePast(some.at(-1));
        }
        count = await this.#nextSize(busyMs, count, found.length);
        if (this.#isOver()) return 'time';
      }
      this.#moveEdgePast(edge ?? undefined);
      from = next;
      if (from !== null && this.#isOver()) return 'time';
    }
    return 'log';
  }

  /** Moves the edge past a chunk that was read completely. */
  #moveEdgePast(chunk: { firstPosition: number; lastPosition: number } | undefined): void {
    if (chunk === undefined) return;
    if (this.#range.direction === 'older') this.#edge = Math.min(this.#edge, chunk.firstPosition);
    else this.#edge = Math.max(this.#edge, chunk.lastPosition);
  }

  /**
   * The database can apply neither a regex nor redacted text, so it returns every line that passes the other
   * conditions.
   */
  #mostRows(all: number): number {
    const isFiltered = this.#filter.regex === null && !this.#isRedacted;
    return isFiltered ? this.#range.limit - this.#lines.length : all;
  }

  /**
   * Filters rows, yielding in between, because a regex may take milliseconds per line. Time spent in the database does
   * not end the scan here, because dropping rows already read would leave the page short.
   *
   * @returns the reason to end the scan; null to continue
   */
  async #filterRows(rows: readonly Row[]): Promise<'full' | 'time' | null> {
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
      if (!this.#yielder.isDue) continue;
      await this.#yield();
      if (this.#busyMs - busyMs >= this.#range.budgetMs) {
        this.#edge = positionToNumber(line.position);
        return 'time';
      }
    }
    return null;
  }

  /** Yields. @returns the size of the next slice, from the duration of the last one */
  async #nextSize(busyMs: number, size: number, largest: number): Promise<number> {
    await this.#yield();
    const tookMs = this.#busyMs - busyMs;
    if (tookMs < STATEMENT_MS / 2) return Math.min(size * 2, Math.max(largest, 1));
    return tookMs > STATEMENT_MS ? Math.max(size >> 1, 1) : size;
  }

  /** Yields. The time of other requests does not count. */
  async #yield(): Promise<void> {
    this.#countTime();
    await this.#yielder.yieldNow();
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
