import { positionToNumber } from '@interlude/protocol/position';
import { foldText } from '@interlude/protocol/projections/log-filter';
import type { LogLine } from '@interlude/protocol/read-models';
import type { Database } from '@/db/client';
import { chunkId, LOG_COLUMNS, levelBits, logLineFromRow } from '@/db/log-rows';
import { ALL_DUE, type DueRows, EVERY_ROW, type RowChoice, selectDue } from '@/db/row-sweep';
import { agentLogs, logChunks } from '@/db/schema';
import { RowWriter, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';

/** Limits of a chunk, so that no row of the full-text table takes long to write. */
const LINES_OF_A_CHUNK = 64;
const LENGTH_OF_A_CHUNK = 32 * 1024;
/** Limits per transaction, for which ingest may have to wait. */
const CHUNKS_OF_A_SLICE = 4;
const BYTES_OF_A_SLICE = 64 * 1024;
/** Pages of the full-text table to merge per slice: more than a slice writes, but few enough for a short write. */
const MERGED_PAGES = 16;

const CHUNK_BACKLOG = shapeOf(agentLogs, 'agentId', 'indexedLine', 'indexedPosition');
/** The indexed part of a log. */
type ChunkBacklog = ReturnType<typeof CHUNK_BACKLOG.read>;

/** Logs with enough lines for another chunk. */
export const UNINDEXED_LOGS: DueRows = {
  table: 'agent_logs',
  key: 'agent_id',
  where: `last_line - indexed_line >= ${LINES_OF_A_CHUNK}`,
  args: [],
};

export async function chunkBacklogs(
  reader: Database['reader'],
  choice: RowChoice = EVERY_ROW,
): Promise<ChunkBacklog[]> {
  return CHUNK_BACKLOG.all(await reader.execute(selectDue(UNINDEXED_LOGS, choice, CHUNK_BACKLOG.columns(), ALL_DUE)));
}

/**
 * Indexes the next slice of a log's lines, separately from ingest.
 *
 * Ordering: chunks follow the order of lines. `indexed_line` moves in the transaction that writes the chunks.
 * Failure: lines never change, so they are read before the transaction. If another process or retention has moved
 * `indexed_line` meanwhile, nothing is written, and the next run starts from the new value.
 *
 * @returns true if the index has grown
 */
export async function chunkNextLines(database: Database, backlog: ChunkBacklog): Promise<boolean> {
  const { agentId, indexedPosition } = backlog;
  const { rows } = await database.reader.execute({
    sql: `SELECT * FROM (
        SELECT *, SUM(size) OVER (ORDER BY position ROWS UNBOUNDED PRECEDING) AS size_so_far FROM (
          SELECT ${LOG_COLUMNS}, octet_length(message) AS size FROM log_lines WHERE agent_id = ? AND position > ?
          ORDER BY position LIMIT ${CHUNKS_OF_A_SLICE * LINES_OF_A_CHUNK})
      ) WHERE size_so_far - size < ${BYTES_OF_A_SLICE}`,
    args: [agentId, indexedPosition],
  });
  const chunks = completeChunks(rows.map(logLineFromRow));
  if (chunks.length === 0) return false;
  return database.writes.run(async (transaction) => {
    transaction.touch(`agent:${agentId}`);
    const { rows: now } = await transaction.execute({
      sql: 'SELECT indexed_line FROM agent_logs WHERE agent_id = ?',
      args: [agentId],
    });
    const indexedLine = Number(now[0]?.indexed_line);
    if (indexedLine === backlog.indexedLine) await writeChunks(transaction, agentId, chunks);
    return indexedLine >= backlog.indexedLine;
  });
}

function completeChunks(lines: readonly LogLine[]): LogLine[][] {
  const chunks: LogLine[][] = [];
  let chunk: LogLine[] = [];
  let length = 0;
  for (const line of lines) {
    chunk.push(line);
    length += line.message.length;
    if (chunk.length < LINES_OF_A_CHUNK && length < LENGTH_OF_A_CHUNK) continue;
    chunks.push(chunk);
    chunk = [];
    length = 0;
  }
  return chunks;
}

const CHUNKS = new RowWriter(logChunks);

/** Writes chunks that continue the index without a gap. */
async function writeChunks(
  transaction: WriteTransaction,
  agentId: string,
  chunks: readonly LogLine[][],
): Promise<void> {
  const number = await agentNumberOf(transaction, agentId);
  const last = chunks.at(-1)?.at(-1);
  await transaction.batch([
    ...CHUNKS.rows(chunks, (lines) => chunkRow(number, lines)),
    {
      sql: 'INSERT INTO log_search (rowid, text) SELECT value->>0, value->>1 FROM json_each(?)',
      args: [JSON.stringify(chunks.map((lines) => [chunkId(number, lines[0]?.line ?? 0), textOf(lines)]))],
    },
    { sql: `INSERT INTO log_search (log_search, rank) VALUES ('merge', ?)`, args: [MERGED_PAGES] },
    {
      sql: 'UPDATE agent_logs SET indexed_line = ?, indexed_position = ? WHERE agent_id = ?',
      args: [last?.line ?? 0, last === undefined ? 0 : positionToNumber(last.position), agentId],
    },
  ]);
}

/** Stores levels per component, so a search for a hook's errors skips chunks with errors of other components only. */
function chunkRow(number: number, lines: readonly LogLine[]) {
  const levels = new Map<string, number>();
  for (const { component, level } of lines) {
    levels.set(component, (levels.get(component) ?? 0) | levelBits([level]));
  }
  const positions = lines.map(({ position }) => positionToNumber(position));
  const times = lines.map(({ occurredAt }) => occurredAt);
  return {
    id: chunkId(number, lines[0]?.line ?? 0),
    firstPosition: positions[0] ?? 0,
    lastPosition: positions.at(-1) ?? 0,
    fromAt: Math.min(...times),
    toAt: Math.max(...times),
    levels: levelBits(lines.map(({ level }) => level)),
    components: [...levels],
    hasMarkers: lines.some(({ marker }) => marker !== undefined),
  };
}

function textOf(lines: readonly LogLine[]): string {
  return [...new Set(lines.map(({ message }) => message))].map(foldText).join('\n');
}

/** The agent's number in the ids of its chunks, assigned with the first chunk. */
export async function agentNumberOf(transaction: WriteTransaction, agentId: string): Promise<number> {
  await transaction.execute({
    sql: `UPDATE agent_logs SET number = (SELECT ifnull(max(number), 0) + 1 FROM agent_logs)
      WHERE agent_id = ? AND number IS NULL`,
    args: [agentId],
  });
  const { rows } = await transaction.execute({
    sql: 'SELECT number FROM agent_logs WHERE agent_id = ?',
    args: [agentId],
  });
  return Number(rows[0]?.number);
}
