import type { Frame } from '@interlude/protocol/frames';
import { type Position, positionFromNumber } from '@interlude/protocol/position';
import { maskDigests, mayHaveDigest } from '@interlude/protocol/redaction/mask-digests';
import { encodeFrame, formatTopic } from '@interlude/protocol/sse';
import { agentFromRow, inboxItemFromRow, obligationFromRow, sessionFromRow, taskFromRow } from '@/db/fleet-rows';
import { PLAIN_DIGESTS, type ShownDigests } from '@/lib/server/access/shown-digests';
import type { EventRow, Row } from '@/lib/server/event-log/rows';

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

/** The text of a row's frame with the digests that its readers may see. */
export function withDigests(frame: string, { kind }: Row, digests: ShownDigests): string {
  // an agent's log lines are free text
  if (digests === PLAIN_DIGESTS || kind === 'log' || !mayHaveDigest(frame)) return frame;
  const from = frame.indexOf(DATA) + DATA.length;
  const data = frame.slice(from, -FRAME_END.length);
  return `${frame.slice(0, from)}${JSON.stringify(maskDigests(JSON.parse(data), digests))}${FRAME_END}`;
}

const DATA = '\ndata: ';
const FRAME_END = '\n\n';

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
