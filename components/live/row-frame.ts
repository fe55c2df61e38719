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
type RowFrameName = (typeof ROW_FRAMES)[number];

/** A frame that carries a row: it has a position and a topic. */
export type RowFrame = Extract<Frame, { event: RowFrameName }> & { id: Position };

/** False for frames of a newer server that this client doesn't know. */
export function isRowFrameName(name: string | undefined): name is RowFrameName {
  return (ROW_FRAMES as readonly (string | undefined)[]).includes(name);
}

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

/** Returns the session events among the frames. */
export function entriesOf(frames: readonly RowFrame[]) {
  return frames.flatMap(({ event, id, data }) => (event === 'session-event' ? [{ position: id, ...data }] : []));
}
