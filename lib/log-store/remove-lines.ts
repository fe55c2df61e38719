import type { InStatement, Row } from '@libsql/client';
import type { Database } from '@/db/client';
import { chunkId } from '@/db/log-chunks';
import { choiceArgs, EVERY_ROW, isChosen, type RowChoice } from '@/db/row-sweep';
import type { WriteTransaction } from '@/db/write-queue';
import { agentNumberOf } from './agent-number';

export interface Retention {
  /** How long a line is kept from when it was received. */
  maxAgeMs: number;
  /** Most UTF-8 bytes of messages of one agent. */
  maxBytes: number;
}

/** Of one transaction, for which ingest may have to wait. */
const LINES_OF_A_SLICE = 256;

/** The agents whose logs are too large, or begin with a line that is too old. */
export async function overdueLogs(
  reader: Database['reader'],
  { maxAgeMs, maxBytes }: Retention,
  now: number,
  choice: RowChoice = EVERY_ROW,
): Promise<string[]> {
  const { rows } = await reader.execute({
    sql: `SELECT agent_id FROM agent_logs AS log WHERE (bytes > ?1 OR (removed_lines < last_line AND (
        SELECT received_at FROM log_lines WHERE agent_id = log.agent_id AND line > log.removed_lines
        ORDER BY position LIMIT 1) < ?2)) AND ${isChosen('agent_id', 3)}`,
    args: [maxBytes, now - maxAgeMs, ...choiceArgs(choice)],
  });
  return rows.map((row) => String(row.agent_id));
}

/**
 * Removes the oldest lines of a log as long as they are too old or the log is too large, a slice at a time. In the place
 * of the newest line removed stands a marker, of which there is one: whoever resumes from before it gets it first.
 *
 * Ordering: oldest first. Lines, their counts, the marker and what is indexed of them change in one transaction.
 * Failure: it runs inside the caller's transaction and commits nothing itself.
 *
 * @returns how many; call again while it is not 0
 */
export async function removeOldLines(
  transaction: WriteTransaction,
  agentId: string,
  retention: Retention,
  now: number,
): Promise<number> {
  const [log, oldest] = await transaction.batch([
    { sql: 'SELECT * FROM agent_logs WHERE agent_id = ?', args: [agentId] },
    {
      sql: `SELECT position, line, occurred_at, received_at, component, octet_length(message) AS size FROM log_lines
        WHERE agent_id = ?1 AND line > (SELECT removed_lines FROM agent_logs WHERE agent_id = ?1)
        ORDER BY position LIMIT ${LINES_OF_A_SLICE}`,
      args: [agentId],
    },
  ]);
  const before = log?.rows[0];
  if (before === undefined) return 0;
  const removed = linesToRemove(oldest?.rows ?? [], Number(before.bytes), retention, now);
  const newest = removed.at(-1);
  if (newest === undefined) return 0;
  const number = await agentNumberOf(transaction, agentId);
  const size = removed.reduce((sum, row) => sum + Number(row.size), 0);
  const marker = {
    kind: 'retention',
    lines: Number(before.removed_lines) + removed.length,
    bytes: Number(before.removed_bytes) + size,
  };
  const message = describeRemoved(marker, retention);
  await transaction.batch([
    {
      // the marker before it goes with them
      sql: 'DELETE FROM log_lines WHERE agent_id = ? AND position <= ?',
      args: [agentId, newest.position ?? 0],
    },
    {
      sql: `INSERT INTO log_lines (position, agent_id, occurred_at, received_at, level, component, message, line, marker)
        VALUES (?, ?, ?, ?, 'info', 'interlude', ?, ?, ?)`,
      args: [
        newest.position ?? 0,
        agentId,
        newest.occurred_at ?? 0,
        newest.received_at ?? 0,
        message,
        newest.line ?? 0,
        JSON.stringify(marker),
      ],
    },
    {
      sql: `UPDATE agent_logs SET bytes = bytes - ?2, removed_lines = ?3, removed_bytes = ?4,
          indexed_line = max(indexed_line, ?3), indexed_position = max(indexed_position, ?5) WHERE agent_id = ?1`,
      args: [agentId, size, marker.lines, marker.bytes, newest.position ?? 0],
    },
    ...componentStatements(agentId, removed),
    ...chunkStatements(number, newest),
  ]);
  return removed.length;
}

function linesToRemove(oldest: readonly Row[], bytes: number, { maxAgeMs, maxBytes }: Retention, now: number): Row[] {
  const removed: Row[] = [];
  let left = bytes;
  for (const row of oldest) {
    if (left <= maxBytes && Number(row.received_at) >= now - maxAgeMs) break;
    removed.push(row);
    left -= Number(row.size);
  }
  return removed;
}

function componentStatements(agentId: string, removed: readonly Row[]): InStatement[] {
  const counts = new Map<string, number>();
  for (const { component } of removed) counts.set(String(component), (counts.get(String(component)) ?? 0) + 1);
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

/** The chunk that still has lines begins with the marker now. Where there is none, the marker is a chunk of its own. */
function chunkStatements(number: number, { position, line, occurred_at }: Row): InStatement[] {
  const at = position ?? 0;
  const own = 'id BETWEEN ? AND ?';
  const id = chunkId(number, Number(line));
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
      args: [id, at, occurred_at ?? 0, chunkId(number, 0)],
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
