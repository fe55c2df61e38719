/** How often to check whether npm is still there. */
const LOOK_MS = 1_000;

export interface EndSignals {
  ends: AbortSignal;
  /** Fires at the second request. */
  hurries: AbortSignal;
  release: () => void;
}

/**
 * How a command is asked to end: by Ctrl-C or SIGTERM. A kill meant for the npm that started it ends npm and the shell
 * in between and never arrives here, but the parent process changes.
 *
 * @param canHurry the first request lets it finish what it is doing, the second ends that now. Any further request ends
 *   the process at once
 */
export function endSignals(canHurry = false): EndSignals {
  const ends = new AbortController();
  const hurries = new AbortController();
  const ask = () => {
    if (ends.signal.aborted && (hurries.signal.aborted || !canHurry)) process.exit(130);
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
