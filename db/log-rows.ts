import type { Row } from '@libsql/client';
import type { LogLevel } from '@/lib/protocol/log-levels';
import { positionFromNumber } from '@/lib/protocol/position';
import type { LogLine } from '@/lib/protocol/read-models';

export const LOG_COLUMNS = 'position, agent_id, occurred_at, level, component, message, line, redacted, marker';

export function logLineFromRow(row: Row): LogLine {
  const redacted = Number(row.redacted);
  return {
    position: positionFromNumber(Number(row.position)),
    line: Number(row.line),
    occurredAt: Number(row.occurred_at),
    level: String(row.level) as LogLevel,
    component: String(row.component),
    message: String(row.message),
    ...(redacted > 0 ? { redacted } : {}),
    ...(row.marker === null ? {} : { marker: JSON.parse(String(row.marker)) }),
  };
}
