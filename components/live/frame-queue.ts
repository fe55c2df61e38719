import type { TopicReader } from './live-connection';
import type { RowFrame } from './row-frame';

/** Time one flush may take before the rest waits for the next frame: half of what a 60 Hz frame grants. */
const FLUSH_BUDGET_MS = 8;
const SLICE = 200;
/** Hidden pages get no animation frames, yet what arrives must not pile up. */
const HIDDEN_FLUSH_MS = 250;

/**
 * Hands frames over once per animation frame, in slices, so that a burst (a resume over ten thousand events, five
 * hundred deltas a second) never becomes one long task.
 *
 * Ordering: per reader first in, first out.
 */
export class FrameQueue {
  readonly #waiting = new Map<TopicReader, RowFrame[]>();
  #scheduled = false;

  push(reader: TopicReader, frames: RowFrame[]): void {
    const queue = this.#waiting.get(reader);
    if (queue) for (const frame of frames) queue.push(frame);
    else this.#waiting.set(reader, frames.slice());
    this.#schedule();
  }

  drop(reader: TopicReader): void {
    this.#waiting.delete(reader);
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    const flush = () => {
      this.#scheduled = false;
      this.#flush();
    };
    if (document.visibilityState === 'visible') requestAnimationFrame(flush);
    else setTimeout(flush, HIDDEN_FLUSH_MS);
  }

  #flush(): void {
    const deadline = performance.now() + FLUSH_BUDGET_MS;
    for (const [reader, queue] of this.#waiting) {
      let taken = 0;
      while (taken < queue.length && performance.now() < deadline) {
        reader.frames(queue.slice(taken, taken + SLICE));
        taken += SLICE;
        // A reader may leave while it is being served.
        if (!this.#waiting.has(reader)) break;
      }
      if (taken >= queue.length) this.#waiting.delete(reader);
      else queue.splice(0, taken);
    }
    if (this.#waiting.size > 0) this.#schedule();
  }
}
