/** How often it is looked whether npm is still there. */
const LOOK_MS = 1_000;

/**
 * How a runner is asked to end: the first Ctrl-C or polite kill lets the agent finish what it is at, the second ends it
 * now, the third ends this process as it stands. A kill that is meant for the npm that started it ends npm and the shell
 * in between, and never comes here: it shows in the parent, which is another one then.
 */
export function endSignals(): { ends: AbortSignal; hurries: AbortSignal; release: () => void } {
  const ends = new AbortController();
  const hurries = new AbortController();
  const ask = () => {
    if (hurries.signal.aborted) process.exit(130);
    (ends.signal.aborted ? hurries : ends).abort();
  };
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const name of names) process.on(name, ask);
  const parent = process.ppid;
  const orphaned = () => {
    if (process.ppid === parent) return;
    clearInterval(looking);
    ask();
  };
  const isOfNpm = process.env.npm_lifecycle_event !== undefined;
  const looking = isOfNpm ? setInterval(orphaned, LOOK_MS).unref() : undefined;
  return {
    ends: ends.signal,
    hurries: hurries.signal,
    release() {
      for (const name of names) process.off(name, ask);
      clearInterval(looking);
    },
  };
}
