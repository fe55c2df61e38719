import { comparePositions, type Position } from '@/lib/protocol/position';
import type { RowFrame } from './row-frame';

/** Frames kept per topic, so that a view opened again soon is served without a new connection. */
const RETAINED_FRAMES = 2_000;

/**
 * What the connection knows of one topic.
 *
 * Ordering: `frames` ascend; together with the snapshot at `coveredFrom` they are everything up to `position`.
 */
export class TopicTrack {
  /** Everything of this topic up to here has arrived. */
  position: Position;
  /** Everything after this, up to `position`, is in `frames`. */
  coveredFrom: Position;
  frames: RowFrame[] = [];

  constructor(after: Position) {
    this.position = after;
    this.coveredFrom = after;
  }

  /** @returns whether the frame is new. A stream that was opened further back for another topic repeats some. */
  take(frame: RowFrame): boolean {
    if (comparePositions(frame.id, this.position) <= 0) return false;
    this.position = frame.id;
    this.frames.push(frame);
    if (this.frames.length > RETAINED_FRAMES) {
      const dropped = this.frames.splice(0, this.frames.length - RETAINED_FRAMES / 2);
      this.coveredFrom = dropped.at(-1)?.id ?? this.coveredFrom;
    }
    return true;
  }

  /** Nothing of this topic stands between `position` and here. */
  advance(position: Position): void {
    if (comparePositions(position, this.position) > 0) this.position = position;
  }

  covers(after: Position): boolean {
    return comparePositions(after, this.coveredFrom) >= 0;
  }

  since(after: Position): RowFrame[] {
    return this.frames.filter((frame) => comparePositions(frame.id, after) > 0);
  }

  /** Start again from `after`: what comes from here on is told anew. */
  rewind(after: Position): void {
    this.position = after;
    this.coveredFrom = after;
    this.frames = [];
  }
}
