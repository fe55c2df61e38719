import { flushSync } from 'react-dom';
import { type Scheduled, whenIdle } from './when-idle';

/** Time for heavy work while the page renders: half of a 60 Hz frame, for all components together. */
const SLICE_MS = 8;
const queue: (() => void)[] = [];
let isDraining = false;

/**
 * Queues work that makes the page larger. One job runs per idle period and frame, so the longest task stays bounded
 * however many jobs there are.
 *
 * Ordering: last in, first out. The newest job belongs to the end of the page, where the reader is.
 */
export function enqueueIdle(run: () => void): Scheduled {
  queue.push(run);
  if (!isDraining) {
    isDraining = true;
    whenIdle(drain);
  }
  return {
    cancel() {
      const index = queue.indexOf(run);
      if (index !== -1) queue.splice(index, 1);
    },
  };
}

function drain(): void {
  const run = queue.pop();
  if (run === undefined) {
    isDraining = false;
    return;
  }
  try {
    // React would batch this update with the next job's.
    flushSync(run);
  } finally {
    requestAnimationFrame(() => whenIdle(drain));
  }
}

/** Time spent in `inSlice` since the event loop last turned. */
let spentMs = 0;

/** True while a component may do heavy work during its render instead of queueing it. */
export function hasTime(): boolean {
  return spentMs < SLICE_MS;
}

/** Runs heavy work, which calls `hasTimeLeft` after each piece and stops once that returns false. */
export function inSlice<Result>(work: (hasTimeLeft: () => boolean) => Result): Result {
  const startedAt = performance.now();
  try {
    return work(() => performance.now() < startedAt + SLICE_MS);
  } finally {
    if (spentMs === 0 && typeof window !== 'undefined') setTimeout(() => (spentMs = 0));
    spentMs += typeof window === 'undefined' ? 0 : performance.now() - startedAt;
  }
}
