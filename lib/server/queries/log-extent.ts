import type { LogExtent } from '@interlude/protocol/read-models';
import { agentLogs } from '@/db/schema';
import { shapeOf } from '@/db/table-rows';
import { type Query, query } from './read-together';

const EXTENT = shapeOf(agentLogs, 'lastLine', 'removedLines', 'bytes');

/** The extent of a log without lines. */
export const NO_LOG: LogExtent = { firstLine: 1, lastLine: 0, lines: 0, bytes: 0 };

/** The extent of an agent's log, without reading its lines. */
export function selectExtent(agentId: string): Query<LogExtent> {
  const toExtent = (row: Parameters<typeof EXTENT.read>[0]): LogExtent => {
    const { lastLine, removedLines, bytes } = EXTENT.read(row);
    return { firstLine: removedLines + 1, lastLine, lines: lastLine - removedLines, bytes };
  };
  return query(toExtent, `SELECT ${EXTENT.columns()} FROM agent_logs WHERE agent_id = ?`, agentId);
}
