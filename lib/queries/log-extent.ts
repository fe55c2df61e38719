import type { InStatement, Row } from '@libsql/client';
import type { LogExtent } from '@/lib/protocol/read-models';

/** The log of an agent as a whole, without looking at its lines. */
export function selectExtent(agentId: string): InStatement {
  return { sql: 'SELECT last_line, removed_lines, bytes FROM agent_logs WHERE agent_id = ?', args: [agentId] };
}

export function extentFromRow(row: Row | undefined): LogExtent {
  const lastLine = Number(row?.last_line ?? 0);
  const removed = Number(row?.removed_lines ?? 0);
  return { firstLine: removed + 1, lastLine, lines: lastLine - removed, bytes: Number(row?.bytes ?? 0) };
}
