import { type LogFilter, levelsOf, requiredText } from '@interlude/protocol/projections/log-filter';
import type { InStatement } from '@libsql/client';
import type { Database } from '@/db/client';
import { chunkId, LOG_CHUNK, type LogChunk, levelBits } from '@/db/log-rows';
import { columnText } from '@/db/table-rows';
import { allOf, type Condition, condition } from './log-condition';
import { matchOf } from './log-match';

/** The chunks of an agent, from its first to its last, as they are when a scan begins. */
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

/** The chunk that has the line next to a position, on the side that is scanned. */
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
 * Of the line with this number, or the next one there is. Lines are numbered densely, so it is counted off from the
 * beginning of its chunk, in the index alone; a line in no chunk yet, from that of the last.
 *
 * @returns null when all lines have lower numbers
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

/** How many lines' worth of chunks one statement may look through. */
const WINDOW_LINES = 64 * 1024;
/** Most chunks of one answer. */
const MAX_FOUND = 64;

export interface ChunkWindow {
  /** Chunks that may have a line that matches, in the order of the scan. */
  found: LogChunk[];
  /** Where to go on; null when the region ends here. */
  next: number | null;
  /** Chunks up to here, in the order of the scan, are in `found` or have nothing. */
  edge: LogChunk | null;
}

/**
 * The next chunks that may have a line that matches.
 *
 * @param from the id of the first chunk to look at
 */
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
  const match = required === null ? null : matchOf(required);
  const which = chunkCondition(filter);
  const order = isOlder ? 'DESC' : 'ASC';
  const columns = LOG_CHUNK.columns('c');
  if (match === null) {
    return {
      sql: `SELECT ${columns} FROM log_chunks AS c WHERE c.id BETWEEN ? AND ? AND ${which.sql}
        ORDER BY c.id ${order} LIMIT ${MAX_FOUND}`,
      args: [low, high, ...which.args],
    };
  }
  return {
    sql: `SELECT ${columns} FROM log_search AS s CROSS JOIN log_chunks AS c ON c.id = s.rowid
      WHERE s.log_search MATCH ? AND s.rowid BETWEEN ? AND ? AND ${which.sql}
      ORDER BY s.rowid ${order} LIMIT ${MAX_FOUND}`,
    args: [match, low, high, ...which.args],
  };
}

/** What a chunk must say for a line in it to match. */
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
