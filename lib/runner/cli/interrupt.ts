/** A signal that fires at Ctrl-C and at a polite kill. A second Ctrl-C ends the process at once. */
export function interruptSignal(): { signal: AbortSignal; release: () => void } {
  const controller = new AbortController();
  const interrupt = () => {
    if (controller.signal.aborted) process.exit(130);
    controller.abort();
  };
  const names = ['SIGINT', 'SIGTERM'] as const;
  for (const name of names) process.on(name, interrupt);
  return {
    signal: controller.signal,
    release() {
      for (const name of names) process.off(name, interrupt);
    },
  };
}
