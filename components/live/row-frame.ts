import type { Frame, FrameName } from '@interlude/protocol/frames';
import type { Position } from '@interlude/protocol/position';

const ROW_FRAMES = [
  'session-event',
  'log',
  'session',
  'agent',
  'task',
  'obligation',
  'inbox',
] as const satisfies readonly FrameName[];
export type RowFrameName = (typeof ROW_FRAMES)[number];

/** A frame that stands for a row: it has a place in the order and belongs to a topic. */
export type RowFrame = Extract<Frame, { event: RowFrameName }> & { id: Position };

/** Frames of a kind this client does not know yet are not rows to it: a newer server may send them. */
export function isRowFrameName(name: string | undefined): name is RowFrameName {
  return (ROW_FRAMES as readonly (string | undefined)[]).includes(name);
}

/** The topic that carries a frame. */
export function topicOf(frame: RowFrame): string {
  switch (frame.event) {
    case 'session-event':
      return `session:${frame.data.sessionId}`;
    case 'log':
      return `logs:${frame.data.agentId}`;
    default:
      return 'fleet';
  }
}

/** The session events among them, as they are folded. */
export function entriesOf(frames: readonly RowFrame[]) {
  return frames.flatMap(({ event, id, data }) => (event === 'session-event' ? [{ position: id, ...data }] : []));
}
