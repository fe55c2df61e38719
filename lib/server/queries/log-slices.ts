import type { InStatement, Row } from '@libsql/client';
import type { LogChunk } from '@/db/log-rows';
import { LOG_COLUMNS } from '@/db/log-rows';
import type { Condition } from './log-condition';

/** The statements that read a slice of a log: rows in the order of the scan, with the `size` of their messages. */
export interface Slice {
  agentId: string;
  direction: 'older' | 'newer';
  /** Only lines after this position, in the direction of the scan. */
  edge: number;
  /** Lines between these are read, both included. */
  low: number;
  high: number;
  condition: Condition;
  /** Most rows. */
  limit: number;
}

/** Limit for the rows of one statement: a line may have 64 KiB. */
export const SLICE_BYTES = 1024 * 1024;

/**
 * The next `span` lines: how far they reach (`edge`, `seen`), and those of them that may match, as many as
 * `SLICE_BYTES` hold.
 */
export function selectSpan(slice: Slice, span: number): InStatement[] {
  const { agentId, condition, limit } = slice;
  const isOlder = slice.direction === 'older';
  const order = isOlder ? 'DESC' : 'ASC';
  const [low, high] = boundsOf(slice);
  const range = 'agent_id = ? AND position BETWEEN ? AND ?';
  const looked = `SELECT position FROM log_lines WHERE ${range} ORDER BY position ${order} LIMIT ?`;
  const lookedArgs = [agentId, low, high, span];
  const reach = `SELECT ${isOlder ? 'min' : 'max'}(position) AS edge, count(*) AS seen FROM (${looked})`;
  const edge = `(SELECT edge FROM (${reach}))`;
  const reached = isOlder ? `${edge} AND ?` : `? AND ${edge}`;
  const reachedArgs = isOlder ? [...lookedArgs, high] : [low, ...lookedArgs];
  return [
    { sql: reach, args: lookedArgs },
    {
      sql: asManyAsFit(
        `SELECT ${LOG_COLUMNS}, octet_length(message) AS size FROM log_lines
          WHERE agent_id = ? AND position BETWEEN ${reached} AND ${condition.sql}
          ORDER BY position ${order} LIMIT ?`,
        order,
      ),
      args: [agentId, ...reachedArgs, ...condition.args, limit],
    },
  ];
}

/**
 * Lines of some chunks that may match, as many as `SLICE_BYTES` hold. What is sorted are the numbers of their rows; `+`
 * keeps it to the chunks.
 */
export function selectInChunks(slice: Slice, chunks: readonly LogChunk[]): InStatement {
  const { agentId, condition, limit } = slice;
  const [low, high] = boundsOf(slice);
  const order = slice.direction === 'older' ? 'DESC' : 'ASC';
  return {
    sql: asManyAsFit(
      `SELECT ${LOG_COLUMNS}, octet_length(message) AS size FROM log_lines WHERE position IN (
          SELECT position FROM json_each(?) AS chunk CROSS JOIN log_lines INDEXED BY log_lines_by_agent
            ON agent_id = ? AND position BETWEEN chunk.value->>0 AND chunk.value->>1
          WHERE +position BETWEEN ? AND ? AND ${condition.sql})
        ORDER BY position ${order} LIMIT ?`,
      order,
    ),
    args: [
      JSON.stringify(chunks.map(({ firstPosition, lastPosition }) => [firstPosition, lastPosition])),
      agentId,
      low,
      high,
      ...condition.args,
      limit,
    ],
  };
}

/** The rows of a statement that fit `SLICE_BYTES`, each with the `size_so_far` of it and those before it. */
function asManyAsFit(rows: string, order: 'ASC' | 'DESC'): string {
  return `SELECT * FROM (
      SELECT *, SUM(size) OVER (ORDER BY position ${order} ROWS UNBOUNDED PRECEDING) AS size_so_far FROM (${rows})
    ) WHERE size_so_far - size < ${SLICE_BYTES}`;
}

/** Whether a statement may have left rows out. */
export function isCut(rows: readonly Row[], limit: number): boolean {
  return rows.length >= limit || Number(rows.at(-1)?.size_so_far ?? 0) >= SLICE_BYTES;
}

/** One lower and one upper bound: given two of a kind, SQLite seeks by one and scans up to the other. */
function boundsOf({ direction, edge, low, high }: Slice): [low: number, high: number] {
  return direction === 'older' ? [low, Math.min(high, edge - 1)] : [Math.max(low, edge + 1), high];
}
