import { agentFromRow, inboxItemFromRow, obligationFromRow, sessionFromRow, taskFromRow } from '@/db/fleet-rows';
import type { EventRow, Row } from '@/lib/event-log/rows';
import { type Frame, formatTopic } from '@/lib/protocol/frames';
import { type Position, positionFromNumber } from '@/lib/protocol/position';
import { encodeFrame } from '@/lib/protocol/sse';

/** The topic that carries a row. */
export function topicOf(row: Row): string {
  if (row.kind === 'event') return formatTopic({ kind: 'session', sessionId: row.sessionId });
  if (row.kind === 'log') return formatTopic({ kind: 'logs', agentId: row.agentId });
  return 'fleet';
}

type RowFrame = Extract<Frame, { id?: Position }> & { event: Exclude<Row['kind'], 'event'> };

/**
 * A row as the text of its frame.
 *
 * @param told what to tell in place of a row of the fleet
 */
export function rowFrame(row: Row, told?: RowFrame): string {
  const id = positionFromNumber(row.position);
  if (row.kind === 'event') return eventFrame(id, row);
  return encodeFrame({ id, ...(told ?? frameOf(row)) });
}

/** A frame without its id. */
export function frameOf(row: Exclude<Row, EventRow>): RowFrame {
  switch (row.kind) {
    case 'log': {
      const { position: _, ...line } = row.line;
      return { event: 'log', data: { agentId: row.agentId, ...line } };
    }
    case 'session':
      return { event: 'session', data: sessionFromRow(row.columns) };
    case 'agent':
      return { event: 'agent', data: agentFromRow(row.columns) };
    case 'task':
      return { event: 'task', data: taskFromRow(row.columns) };
    case 'obligation':
      return { event: 'obligation', data: obligationFromRow(row.columns) };
    case 'inbox':
      return { event: 'inbox', data: inboxItemFromRow(row.columns) };
  }
}

/**
 * The hot path: the event is JSON already and goes into the frame as it stands, unparsed. A line break between its
 * tokens would end the frame's data line, so such a payload (ingest writes none) is serialised again.
 */
function eventFrame(id: string, row: EventRow): string {
  const payload = /[\r\n]/.test(row.payload) ? JSON.stringify(JSON.parse(row.payload)) : row.payload;
  const names = `"sessionId":${JSON.stringify(row.sessionId)},"agentId":${JSON.stringify(row.agentId)}`;
  const numbers = `"seq":${row.seq},"occurredAt":${row.occurredAt},"receivedAt":${row.receivedAt}`;
  return `id: ${id}\nevent: session-event\ndata: {${names},${numbers},"event":${payload}}\n\n`;
}
