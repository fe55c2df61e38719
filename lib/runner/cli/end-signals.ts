/**
 * How a runner is asked to end: the first Ctrl-C or polite kill lets the agent finish what it is at, the second ends it
 * now, the third ends this process as it stands.
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
  return {
    ends: ends.signal,
    hurries: hurries.signal,
    release() {
      for (const name of names) process.off(name, ask);
    },
  };
}
