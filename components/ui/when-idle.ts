/** Runs something when the page has nothing better to do, within a second. */
export function whenIdle(run: () => void): { cancel(): void } {
  // Safari has no idle callbacks.
  if (typeof requestIdleCallback === 'undefined') {
    const timer = setTimeout(run, 50);
    return { cancel: () => clearTimeout(timer) };
  }
  const handle = requestIdleCallback(run, { timeout: 1_000 });
  return { cancel: () => cancelIdleCallback(handle) };
}
