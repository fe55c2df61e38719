import { positionFromNumber } from '@interlude/protocol/position';
import type { LogLine } from '@interlude/protocol/read-models';
import type { Row } from '@libsql/client';
import { logLines } from './schema';
import { shapeOf } from './table-rows';

const LINE = shapeOf(logLines, 'position', 'line', 'occurredAt', 'level', 'component', 'message', 'redacted', 'marker');

export const LOG_COLUMNS = `agent_id, ${LINE.columns()}`;

export function logLineFromRow(row: Row): LogLine {
  const { position, redacted, marker, ...line } = LINE.read(row);
  return {
    position: positionFromNumber(position),
    ...line,
    ...(redacted > 0 ? { redacted } : {}),
    ...(marker === null ? {} : { marker }),
  };
}
