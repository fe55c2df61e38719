import { flushSync } from 'react-dom';
import { whenIdle } from './when-idle';

/** What still waits, in the order it asked. */
const waiting: (() => void)[] = [];
let isAtWork = false;

/**
 * Runs something that makes the page larger when the page is idle and nothing else does: one at a time for the whole
 * page, and each is drawn before the next begins. What one of them adds is bounded, so the longest task is, however
 * many there are. The last to ask comes first: it stands at the end, where the reader is.
 */
export function inTurn(run: () => void): { cancel(): void } {
  waiting.push(run);
  if (!isAtWork) {
    isAtWork = true;
    whenIdle(next);
  }
  return {
    cancel() {
      const at = waiting.indexOf(run);
      if (at !== -1) waiting.splice(at, 1);
    },
  };
}

function next(): void {
  const run = waiting.pop();
  if (run === undefined) {
    isAtWork = false;
    return;
  }
  try {
    // Now, not together with what the next one adds.
    flushSync(run);
  } finally {
    requestAnimationFrame(() => whenIdle(next));
  }
}
