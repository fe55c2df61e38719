import type { InStatement } from '@libsql/client';
import type { Database } from '@/db/client';
import { LOG_COLUMNS, logLineFromRow } from '@/db/log-rows';
import { nextTurn } from '@/db/next-turn';
import { type LogFilter, matchesLine } from '@/lib/projections/log-filter';
import { positionToNumber } from '@/lib/protocol/position';
import type { LogLine } from '@/lib/protocol/read-models';
import { conditionOf } from './log-condition';

export interface ScanRange {
  direction: 'older' | 'newer';
  /** Where to begin: only lines beyond this position, in the direction of the scan. */
  edge: number;
  /** Lines newer than this are not looked at: they came after the reading began. */
  newest: number;
  /** Most lines. */
  limit: number;
  /** Most bytes of messages, give or take one line. */
  bytes: number;
  /** How long the scan may keep the event loop busy; Infinity to scan to the end. */
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

/** How many lines one statement looks at: few at first, and as many as can be done without holding up others. */
const FIRST_SPAN = 128;
const LARGEST_SPAN = 4096;
const STATEMENT_MS = 8;

/**
 * Looks for the lines of a log that match, from a position on, a slice at a time.
 *
 * Ordering: the order of positions, upwards or downwards.
 * Failure: throws what the database throws. Each slice is a read of its own: lines that retention removes meanwhile
 * are not found, and its marker is.
 */
export async function scanLog(
  reader: Database['reader'],
  agentId: string,
  filter: LogFilter,
  range: ScanRange,
): Promise<LogScan> {
  const lines: LogLine[] = [];
  let bytes = 0;
  let busyMs = 0;
  let span = FIRST_SPAN;
  let edge = range.edge;
  for (;;) {
    const beganAt = performance.now();
    // the database judges no regex: behind its other conditions every line has to be looked at
    const most = filter.regex === null ? range.limit - lines.length : span;
    const statements = sliceStatements(agentId, filter, { ...range, edge, limit: most }, span);
    const [reach, found] = await reader.batch(statements, 'read');
    const rows = found?.rows ?? [];
    for (const row of rows) {
      const line = logLineFromRow(row);
      if (!matchesLine(filter, line)) continue;
      lines.push(line);
      bytes += Number(row.size);
      if (lines.length < range.limit && bytes < range.bytes) continue;
      return { lines, end: 'full', searchedTo: positionToNumber(line.position) };
    }
    const seen = Number(reach?.rows[0]?.seen ?? 0);
    const isCut = rows.length > 0 && Number(rows.at(-1)?.size_so_far) >= SLICE_BYTES;
    const last = isCut || rows.length >= most ? Number(rows.at(-1)?.position) : null;
    edge = last ?? Number(reach?.rows[0]?.edge ?? edge);
    if (last === null && seen < span) return { lines, end: 'log', searchedTo: edge };
    const tookMs = performance.now() - beganAt;
    busyMs += tookMs;
    if (busyMs >= range.budgetMs) return { lines, end: 'time', searchedTo: edge };
    if (tookMs < STATEMENT_MS / 2) span = Math.min(span * 2, LARGEST_SPAN);
    else if (tookMs > STATEMENT_MS) span = Math.max(span >> 1, 1);
    await nextTurn();
  }
}

/** Of the rows of one statement: a line may have 64 KiB. */
const SLICE_BYTES = 1024 * 1024;

/** How far the next `span` lines reach, and those of them that may match. */
function sliceStatements(agentId: string, filter: LogFilter, range: ScanRange, span: number): InStatement[] {
  const isOlder = range.direction === 'older';
  const order = isOlder ? 'DESC' : 'ASC';
  const beyond = isOlder ? 'position < ? AND position <= ?' : 'position > ? AND position <= ?';
  const looked = `SELECT position FROM log_lines WHERE agent_id = ? AND ${beyond} ORDER BY position ${order} LIMIT ?`;
  const lookedArgs = [agentId, range.edge, range.newest, span];
  const edge = `SELECT ${isOlder ? 'min' : 'max'}(position) AS edge, count(*) AS seen FROM (${looked})`;
  const condition = conditionOf(filter);
  return [
    { sql: edge, args: lookedArgs },
    {
      sql: `SELECT * FROM (
          SELECT *, SUM(size) OVER (ORDER BY position ${order} ROWS UNBOUNDED PRECEDING) AS size_so_far FROM (
            SELECT ${LOG_COLUMNS}, octet_length(message) AS size FROM log_lines
            WHERE agent_id = ? AND ${beyond} AND position ${isOlder ? '>=' : '<='} (SELECT edge FROM (${edge}))
              AND ${condition.sql}
            ORDER BY position ${order} LIMIT ?)
        ) WHERE size_so_far - size < ${SLICE_BYTES}`,
      args: [agentId, range.edge, range.newest, ...lookedArgs, ...condition.args, range.limit],
    },
  ];
}
