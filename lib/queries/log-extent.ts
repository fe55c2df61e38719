import { agentLogs } from '@/db/schema';
import { shapeOf } from '@/db/table-rows';
import type { LogExtent } from '@/lib/protocol/read-models';
import { type Query, query } from './read-together';

const EXTENT = shapeOf(agentLogs, 'lastLine', 'removedLines', 'bytes');

/** Of an agent that has written no line. */
export const NO_LOG: LogExtent = { firstLine: 1, lastLine: 0, lines: 0, bytes: 0 };

/** The log of an agent as a whole, without looking at its lines. */
export function selectExtent(agentId: string): Query<LogExtent> {
  const toExtent = (row: Parameters<typeof EXTENT.read>[0]): LogExtent => {
    const { lastLine, removedLines, bytes } = EXTENT.read(row);
    return { firstLine: removedLines + 1, lastLine, lines: lastLine - removedLines, bytes };
  };
  return query(toExtent, `SELECT ${EXTENT.columns()} FROM agent_logs WHERE agent_id = ?`, agentId);
}
