import { comparePositions, type Position } from '@interlude/protocol/position';
import type { ReceivedFrame } from './read-stream';
import type { RowFrame } from './row-frame';

/** What is kept of a topic, so that a view opened again soon is served without a new connection. */
const MOST_FRAMES = 2_000;
const MOST_CHARS = 4_000_000;

/**
 * What the connection knows of one topic.
 *
 * Ordering: what is kept ascends; together with the snapshot at `coveredFrom` it is everything up to `position`.
 */
export class TopicTrack {
  /** Everything of this topic up to here has arrived. */
  position: Position;
  /** Everything after this, up to `position`, is kept. */
  #coveredFrom: Position;
  #kept: ReceivedFrame[] = [];
  #chars = 0;

  constructor(after: Position) {
    this.position = after;
    this.#coveredFrom = after;
  }

  /** @returns whether the frame is new. A stream that was opened further back for another topic repeats some. */
  take(frame: RowFrame, chars: number): boolean {
    if (comparePositions(frame.id, this.position) <= 0) return false;
    this.position = frame.id;
    this.#kept.push({ frame, chars });
    this.#chars += chars;
    if (this.#kept.length > MOST_FRAMES || this.#chars > MOST_CHARS) this.#forgetHalf();
    return true;
  }

  /** Nothing of this topic stands between `position` and here. */
  advance(position: Position): void {
    if (comparePositions(position, this.position) > 0) this.position = position;
  }

  covers(after: Position): boolean {
    return comparePositions(after, this.#coveredFrom) >= 0;
  }

  since(after: Position): RowFrame[] {
    return this.#kept.flatMap(({ frame }) => (comparePositions(frame.id, after) > 0 ? frame : []));
  }

  /** Start again from `after`: what comes from here on is told anew. */
  rewind(after: Position): void {
    this.position = after;
    this.#coveredFrom = after;
    this.#kept = [];
    this.#chars = 0;
  }

  #forgetHalf(): void {
    let count = 0;
    while (this.#kept.length - count > MOST_FRAMES / 2 || this.#chars > MOST_CHARS / 2) {
      this.#chars -= this.#kept[count]?.chars ?? 0;
      count += 1;
    }
    this.#coveredFrom = this.#kept.splice(0, count).at(-1)?.frame.id ?? this.#coveredFrom;
  }
}
