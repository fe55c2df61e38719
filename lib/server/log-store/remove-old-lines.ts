import type { InStatement } from '@libsql/client';
import { chunkId } from '@/db/log-rows';
import type { DueRows } from '@/db/row-sweep';
import { agentLogs, logLines } from '@/db/schema';
import { RowWriter, shapeOf } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import { numberSetting } from '@/lib/server/access/access-settings';
import { agentNumberOf } from './chunk-lines';

export interface Retention {
  /** Milliseconds that a line is kept after it was received. */
  maxAgeMs: number;
  /** Maximum UTF-8 bytes of an agent's messages. */
  maxBytes: number;
}

/** Limit per transaction, for which ingest may have to wait. */
const LINES_OF_A_SLICE = 256;

/** Logs that are too large, or whose first line is too old. */
export function overdueLogs({ maxAgeMs, maxBytes }: Retention, now: number): DueRows {
  const oldest = `SELECT received_at FROM log_lines WHERE agent_id = log.agent_id AND line > log.removed_lines
    ORDER BY position LIMIT 1`;
  return {
    table: 'agent_logs AS log',
    key: 'agent_id',
    where: `(bytes > ?1 OR (removed_lines < last_line AND (${oldest}) < ?2))`,
    args: [maxBytes, now - maxAgeMs],
  };
}

const LOG = shapeOf(agentLogs, 'bytes', 'removedLines', 'removedBytes');
const REMOVED = shapeOf(logLines, 'position', 'line', 'occurredAt', 'receivedAt', 'component');
type RemovedLine = ReturnType<typeof REMOVED.read> & { size: number };

const MARKERS = new RowWriter(logLines, { lacks: ['redacted'] });

/**
 * Removes a slice of a log's oldest lines while they are too old or the log is too large. A single marker takes the
 * place of the newest removed line, so a reader that resumes from an earlier position gets the marker first.
 *
 * Ordering: oldest first. Lines, counts, marker and index change in one transaction.
 * Failure: runs inside the caller's transaction and commits nothing itself.
 *
 * @returns the number of removed lines; call again while it is not 0
 */
export async function removeOldLines(
  transaction: WriteTransaction,
  agentId: string,
  retention: Retention,
  now: number,
): Promise<number> {
  transaction.touch(`agent:${agentId}`);
  const [logs, oldest] = await transaction.batch([
    { sql: `SELECT ${LOG.columns()} FROM agent_logs WHERE agent_id = ?`, args: [agentId] },
    {
      sql: `SELECT ${REMOVED.columns()}, octet_length(message) AS size FROM log_lines
        WHERE agent_id = ?1 AND line > (SELECT removed_lines FROM agent_logs WHERE agent_id = ?1)
        ORDER BY position LIMIT ${LINES_OF_A_SLICE}`,
      args: [agentId],
    },
  ]);
  const log = LOG.first(logs);
  if (log === undefined) return 0;
  const lines = (oldest?.rows ?? []).map((row): RemovedLine => ({ ...REMOVED.read(row), size: Number(row.size) }));
  const removed = linesToRemove(lines, log.bytes, retention, now);
  const newest = removed.at(-1);
  if (newest === undefined) return 0;
  const { position, line, occurredAt, receivedAt } = newest;
  const number = await agentNumberOf(transaction, agentId);
  const size = removed.reduce((sum, one) => sum + one.size, 0);
  const marker = {
    kind: 'retention',
    lines: log.removedLines + removed.length,
    bytes: log.removedBytes + size,
  } as const;
  const message = describeRemoved(marker, retention);
  await transaction.batch([
    // Includes the previous marker.
    { sql: 'DELETE FROM log_lines WHERE agent_id = ? AND position <= ?', args: [agentId, position] },
    MARKERS.one({
      position,
      agentId,
      occurredAt,
      receivedAt,
      level: 'info',
      component: 'interlude',
      message,
      line,
      marker,
    }),
    {
      sql: `UPDATE agent_logs SET bytes = bytes - ?2, removed_lines = ?3, removed_bytes = ?4,
          indexed_line = max(indexed_line, ?3), indexed_position = max(indexed_position, ?5) WHERE agent_id = ?1`,
      args: [agentId, size, marker.lines, marker.bytes, position],
    },
    ...componentStatements(agentId, removed),
    ...searchStatements(number, newest),
  ]);
  return removed.length;
}

function linesToRemove(
  oldest: readonly RemovedLine[],
  bytes: number,
  { maxAgeMs, maxBytes }: Retention,
  now: number,
): RemovedLine[] {
  const removed: RemovedLine[] = [];
  let left = bytes;
  for (const line of oldest) {
    if (left <= maxBytes && line.receivedAt >= now - maxAgeMs) break;
    removed.push(line);
    left -= line.size;
  }
  return removed;
}

function componentStatements(agentId: string, removed: readonly RemovedLine[]): InStatement[] {
  const counts = new Map<string, number>();
  for (const { component } of removed) counts.set(component, (counts.get(component) ?? 0) + 1);
  return [
    {
      sql: `UPDATE log_components SET lines = lines - gone.value->>1 FROM json_each(?2) AS gone
        WHERE agent_id = ?1 AND component = gone.value->>0`,
      args: [agentId, JSON.stringify([...counts])],
    },
    {
      sql: `DELETE FROM log_components WHERE agent_id = ?1 AND lines <= 0
        AND component IN (SELECT value->>0 FROM json_each(?2))`,
      args: [agentId, JSON.stringify([...counts])],
    },
  ];
}

/** The first chunk with remaining lines now starts with the marker. Without such a chunk, the marker gets its own. */
function searchStatements(number: number, { position: at, line, occurredAt }: RemovedLine): InStatement[] {
  const own = 'id BETWEEN ? AND ?';
  const id = chunkId(number, line);
  const ownArgs = [chunkId(number, 0), id];
  return [
    {
      sql: `DELETE FROM log_search WHERE rowid IN (SELECT id FROM log_chunks WHERE ${own} AND last_position <= ?)`,
      args: [...ownArgs, at],
    },
    { sql: `DELETE FROM log_chunks WHERE ${own} AND last_position <= ?`, args: [...ownArgs, at] },
    { sql: `UPDATE log_chunks SET first_position = ?, has_markers = 1 WHERE ${own}`, args: [at, ...ownArgs] },
    {
      sql: `INSERT INTO log_chunks
          (id, first_position, last_position, from_at, to_at, levels, components, has_markers)
        SELECT ?1, ?2, ?2, ?3, ?3, 0, '[]', 1 WHERE NOT EXISTS (SELECT 1 FROM log_chunks WHERE id BETWEEN ?4 AND ?1)`,
      args: [id, at, occurredAt, chunkId(number, 0)],
    },
  ];
}

const DAY_MS = 24 * 60 * 60_000;
const MIB = 1024 * 1024;

function describeRemoved(
  { lines, bytes }: { lines: number; bytes: number },
  { maxAgeMs, maxBytes }: Retention,
): string {
  const number = (value: number) => value.toLocaleString('en', { maximumFractionDigits: 1 });
  const size = bytes < MIB ? `${number(bytes / 1024)} KiB` : `${number(bytes / MIB)} MiB`;
  const limit = (value: number) =>
    value < 1 ? value.toLocaleString('en', { maximumSignificantDigits: 2 }) : number(value);
  const kept = `${limit(maxAgeMs / DAY_MS)} days and ${limit(maxBytes / MIB)} MiB`;
  return `${number(lines)} older ${lines === 1 ? 'line' : 'lines'} (${size}) removed: this log keeps ${kept}`;
}

const DEFAULT_DAYS = 14;
const DEFAULT_MIB = 256;
export function logRetention(env: Record<string, string | undefined>): Retention {
  const kept = (name: string, byDefault: number) =>
    numberSetting(env, name, { byDefault, otherwise: `logs keep ${byDefault}` });
  return {
    maxAgeMs: kept('INTERLUDE_LOG_RETENTION_DAYS', DEFAULT_DAYS) * DAY_MS,
    maxBytes: kept('INTERLUDE_LOG_RETENTION_MIB', DEFAULT_MIB) * MIB,
  };
}
