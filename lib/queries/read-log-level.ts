import type { Database } from '@/db/client';
import { columnText } from '@/db/column-text';
import { agentFromRow } from '@/db/fleet-rows';
import { LOG_LEVELS, type LogLevel } from '@/lib/protocol/log-levels';
import type { Position } from '@/lib/protocol/position';
import type { AgentLogLevel } from '@/lib/protocol/read-models';
import { COUNTER, counterOf } from './counter';

/** `GET /agents/:id/log-level` */
export interface LogLevelDetail extends AgentLogLevel {
  position: Position;
  /** Those there are, the most talkative first. */
  levels: readonly LogLevel[];
}

/** @returns null when there is no such agent */
export async function readLogLevel(database: Database, agentId: string): Promise<LogLevelDetail | null> {
  const [counter, agents] = await database.reader.batch(
    [
      COUNTER,
      {
        sql: 'SELECT id, last_seen_at, body, updated_position FROM agents WHERE id = ?',
        args: [columnText(agentId)],
      },
    ],
    'read',
  );
  const row = agents?.rows[0];
  if (row === undefined) return null;
  return { position: counterOf(counter), ...agentFromRow(row).logLevel, levels: LOG_LEVELS };
}
