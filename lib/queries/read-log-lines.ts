import type { Database } from '@/db/client';
import { columnText } from '@/db/column-text';
import { LOG_COLUMNS, logLineFromRow } from '@/db/log-rows';
import { LOG_LEVELS, type LogLevel } from '@/lib/protocol/envelope';
import type { LogPage } from '@/lib/protocol/read-models';
import { COUNTER, counterOf } from './counter';

export interface LogRange {
  /** Positions of lines; at most one of the two. Neither: the newest page. */
  before: number | null;
  after: number | null;
  limit: number;
  /** Lines of this level and above. */
  level: LogLevel | null;
}

/**
 * A page of an agent's log in ascending order.
 *
 * @returns null when there is no such agent. `hasMore` speaks of the direction asked for: newer lines with `after`,
 * older ones otherwise.
 */
export async function readLogLines(database: Database, agentId: string, range: LogRange): Promise<LogPage | null> {
  const id = columnText(agentId);
  const levels = range.level === null ? LOG_LEVELS : LOG_LEVELS.slice(LOG_LEVELS.indexOf(range.level));
  const forward = range.after !== null;
  const edge = range.after ?? range.before ?? Number.MAX_SAFE_INTEGER;
  const [counter, agent, found] = await database.reader.batch(
    [
      COUNTER,
      { sql: 'SELECT 1 FROM agents WHERE id = ?', args: [id] },
      {
        sql: `SELECT ${LOG_COLUMNS} FROM log_lines
          WHERE agent_id = ? AND position ${forward ? '>' : '<'} ? AND level IN (SELECT value FROM json_each(?))
          ORDER BY position ${forward ? 'ASC' : 'DESC'} LIMIT ?`,
        args: [id, edge, JSON.stringify(levels), range.limit + 1],
      },
    ],
    'read',
  );
  if (agent?.rows.length === 0) return null;
  const rows = found?.rows ?? [];
  const lines = rows.slice(0, range.limit).map(logLineFromRow);
  return { position: counterOf(counter), hasMore: rows.length > range.limit, lines: forward ? lines : lines.reverse() };
}
