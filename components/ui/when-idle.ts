/** An idle callback runs after this time at the latest. */
const LATEST_MS = 1_000;

export interface Scheduled {
  cancel(): void;
}

/** Runs something when the page is idle, within a second. */
export function whenIdle(run: () => void): Scheduled {
  // Safari has no idle callbacks.
  if (typeof requestIdleCallback === 'undefined') {
    const timer = setTimeout(run, 50);
    return { cancel: () => clearTimeout(timer) };
  }
  const handle = requestIdleCallback(run, { timeout: LATEST_MS });
  return { cancel: () => cancelIdleCallback(handle) };
}
