import { type LogFilter, levelsOf, requiredText } from '@interlude/protocol/projections/log-filter';
import type { InStatement, Row } from '@libsql/client';
import type { Database } from '@/db/client';
import { chunkId, LOG_CHUNK, LOG_COLUMNS, type LogChunk, levelBits } from '@/db/log-rows';
import { columnText } from '@/db/table-rows';
import { allOf, type Condition, condition, trigramQuery } from './log-conditions';

/** An agent's chunks at the start of a scan. */
export interface ChunkRegion {
  agentNumber: number;
  first: LogChunk;
  last: LogChunk;
}

/** @returns null while the agent has no chunks */
export async function readChunkRegion(reader: Database['reader'], agentId: string): Promise<ChunkRegion | null> {
  const number = '(SELECT number FROM agent_logs WHERE agent_id = ?1)';
  const own = `FROM log_chunks WHERE id BETWEEN ${number} * ?2 AND (${number} + 1) * ?2 - 1`;
  const args = [agentId, chunkId(1, 0)];
  const [agent, first, last] = await reader.batch(
    [
      { sql: 'SELECT number FROM agent_logs WHERE agent_id = ?', args: [agentId] },
      { sql: `SELECT ${LOG_CHUNK.columns()} ${own} ORDER BY id LIMIT 1`, args },
      { sql: `SELECT ${LOG_CHUNK.columns()} ${own} ORDER BY id DESC LIMIT 1`, args },
    ],
    'read',
  );
  const [firstChunk, lastChunk] = [LOG_CHUNK.first(first), LOG_CHUNK.first(last)];
  if (firstChunk === undefined || lastChunk === undefined) return null;
  return { agentNumber: Number(agent?.rows[0]?.number), first: firstChunk, last: lastChunk };
}

/** The id of the chunk with the first line after a position, in the direction of the scan. */
export async function chunkNear(
  reader: Database['reader'],
  agentId: string,
  { agentNumber, first, last }: ChunkRegion,
  direction: 'older' | 'newer',
  edge: number,
): Promise<number> {
  const isOlder = direction === 'older';
  const { rows } = await reader.execute({
    sql: `SELECT id FROM log_chunks WHERE id BETWEEN ? AND ? + (
        SELECT line FROM log_lines WHERE agent_id = ? AND position ${isOlder ? '<' : '>'} ?
        ORDER BY position ${isOlder ? 'DESC' : 'ASC'} LIMIT 1)
      ORDER BY id DESC LIMIT 1`,
    args: [first.id, chunkId(agentNumber, 0), agentId, edge],
  });
  return Math.min(Number(rows[0]?.id ?? (isOlder ? first.id - 1 : first.id)), last.id);
}

/**
 * The position of the line with this number, or of the next existing line. Numbers are dense, so the query counts from
 * the start of the line's chunk, or of the last chunk, using only the index.
 *
 * @returns null if all lines have lower numbers
 */
export async function readLinePosition(
  reader: Database['reader'],
  agentId: string,
  line: number,
): Promise<number | null> {
  const number = '(SELECT number FROM agent_logs WHERE agent_id = ?1)';
  const own = 'FROM log_lines WHERE agent_id = ?1 AND position >=';
  const { rows } = await reader.execute({
    sql: `WITH near AS (SELECT position, line ${own} coalesce((SELECT first_position FROM log_chunks
          WHERE id BETWEEN ${number} * ?3 AND ${number} * ?3 + ?2 ORDER BY id DESC LIMIT 1), 0)
        ORDER BY position LIMIT 1)
      SELECT position ${own} (SELECT position FROM near) ORDER BY position
      LIMIT 1 OFFSET coalesce(max(0, ?2 - (SELECT line FROM near)), 0)`,
    args: [agentId, line, chunkId(1, 0)],
  });
  return rows[0] === undefined ? null : Number(rows[0].position);
}

/** Maximum lines that the chunks of one statement cover. */
const WINDOW_LINES = 64 * 1024;
/** Maximum chunks per window. */
const MAX_FOUND = 64;

interface ChunkWindow {
  /** Chunks that may hold a match, in the order of the scan. */
  found: LogChunk[];
  /** The next id to read; null at the end of the region. */
  next: number | null;
  /** The last chunk that was examined. */
  edge: LogChunk | null;
}

/** @param from the id of the first chunk to examine */
export async function readChunkWindow(
  reader: Database['reader'],
  region: ChunkRegion,
  filter: LogFilter,
  direction: 'older' | 'newer',
  from: number,
): Promise<ChunkWindow> {
  const isOlder = direction === 'older';
  const [low, high] = isOlder
    ? [Math.max(from - WINDOW_LINES, region.first.id), from]
    : [from, Math.min(from + WINDOW_LINES, region.last.id)];
  if (low > high) return { found: [], next: null, edge: null };
  const [ends, found] = await reader.batch(
    [
      {
        sql: `SELECT ${LOG_CHUNK.columns()} FROM log_chunks WHERE id BETWEEN ? AND ?
          ORDER BY id ${isOlder ? 'ASC' : 'DESC'} LIMIT 1`,
        args: [low, high],
      },
      candidates(filter, low, high, isOlder),
    ],
    'read',
  );
  const chunks = LOG_CHUNK.all(found);
  const isFull = chunks.length === MAX_FOUND;
  const farthest = isFull ? chunks.at(-1) : LOG_CHUNK.first(ends);
  const reached = isFull ? (farthest?.id ?? 0) : isOlder ? low : high;
  const isLast = isOlder ? reached <= region.first.id : reached >= region.last.id;
  return { found: chunks, next: isLast ? null : reached + (isOlder ? -1 : 1), edge: farthest ?? null };
}

function candidates(filter: LogFilter, low: number, high: number, isOlder: boolean): InStatement {
  const required = requiredText(filter);
  const match = required === null ? null : trigramQuery(required);
  const where = chunkCondition(filter);
  const order = isOlder ? 'DESC' : 'ASC';
  const columns = LOG_CHUNK.columns('c');
  if (match === null) {
    return {
      sql: `SELECT ${columns} FROM log_chunks AS c WHERE c.id BETWEEN ? AND ? AND ${where.sql}
        ORDER BY c.id ${order} LIMIT ${MAX_FOUND}`,
      args: [low, high, ...where.args],
    };
  }
  return {
    sql: `SELECT ${columns} FROM log_search AS s CROSS JOIN log_chunks AS c ON c.id = s.rowid
      WHERE s.log_search MATCH ? AND s.rowid BETWEEN ? AND ? AND ${where.sql}
      ORDER BY s.rowid ${order} LIMIT ${MAX_FOUND}`,
    args: [match, low, high, ...where.args],
  };
}

/** The condition on a chunk that may hold a match. */
function chunkCondition(filter: LogFilter): Condition {
  const { level, components, from, to } = filter;
  const bits = level === null && components.length === 0 ? null : levelBits(levelsOf(filter));
  const names = components.length === 0 ? null : JSON.stringify(components.map(columnText));
  const hadComponent = `EXISTS (SELECT 1 FROM json_each(c.components) AS had WHERE had.value->>1 & ? <> 0
    AND had.value->>0 IN (SELECT value FROM json_each(?)))`;
  const own = allOf(condition('c.levels & ? <> 0', bits), condition(hadComponent, bits, names));
  return allOf(
    bits === null ? null : { sql: `(c.has_markers OR (${own.sql}))`, args: own.args },
    condition('c.to_at >= ?', from),
    condition('c.from_at <= ?', to),
  );
}

/** A part of a log to read in one statement. Rows come in the order of the scan, with the `size` of their messages. */
export interface Slice {
  agentId: string;
  direction: 'older' | 'newer';
  /** Reads only lines after this position, in the direction of the scan. */
  edge: number;
  /** Both bounds are included. */
  low: number;
  high: number;
  condition: Condition;
  limit: number;
}

/** Maximum bytes of one statement's rows. A line may have 64 KiB. */
export const SLICE_BYTES = 1024 * 1024;

/** Reads the next `span` lines: their extent (`edge`, `seen`), and those that may match, up to SLICE_BYTES. */
export function selectSpan(slice: Slice, span: number): InStatement[] {
  const { agentId, condition, limit } = slice;
  const isOlder = slice.direction === 'older';
  const order = isOlder ? 'DESC' : 'ASC';
  const [low, high] = boundsOf(slice);
  const range = 'agent_id = ? AND position BETWEEN ? AND ?';
  const scanned = `SELECT position FROM log_lines WHERE ${range} ORDER BY position ${order} LIMIT ?`;
  const scannedArgs = [agentId, low, high, span];
  const reach = `SELECT ${isOlder ? 'min' : 'max'}(position) AS edge, count(*) AS seen FROM (${scanned})`;
  const edge = `(SELECT edge FROM (${reach}))`;
  const reached = isOlder ? `${edge} AND ?` : `? AND ${edge}`;
  const reachedArgs = isOlder ? [...scannedArgs, high] : [low, ...scannedArgs];
  return [
    { sql: reach, args: scannedArgs },
    {
      sql: limitBytes(
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
 * Reads lines of some chunks that may match, up to SLICE_BYTES. Sorts only row numbers; `+` makes SQLite start from the
 * chunks.
 */
export function selectInChunks(slice: Slice, chunks: readonly LogChunk[]): InStatement {
  const { agentId, condition, limit } = slice;
  const [low, high] = boundsOf(slice);
  const order = slice.direction === 'older' ? 'DESC' : 'ASC';
  return {
    sql: limitBytes(
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

/** The rows that fit SLICE_BYTES, with their running total as `size_so_far`. */
function limitBytes(rows: string, order: 'ASC' | 'DESC'): string {
  return `SELECT * FROM (
      SELECT *, SUM(size) OVER (ORDER BY position ${order} ROWS UNBOUNDED PRECEDING) AS size_so_far FROM (${rows})
    ) WHERE size_so_far - size < ${SLICE_BYTES}`;
}

/** True if the statement may have omitted rows. */
export function isCut(rows: readonly Row[], limit: number): boolean {
  return rows.length >= limit || Number(rows.at(-1)?.size_so_far ?? 0) >= SLICE_BYTES;
}

/** One bound per side: given two lower bounds, SQLite seeks to one and scans to the other. */
function boundsOf({ direction, edge, low, high }: Slice): [low: number, high: number] {
  return direction === 'older' ? [low, Math.min(high, edge - 1)] : [Math.max(low, edge + 1), high];
}
