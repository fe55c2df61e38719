import type { Trouble } from '../outbox/drain';

/** The outcome of a replay, once nothing more is sent. */
export interface ReplayOutcome {
  url: string;
  trouble: Trouble | null;
  /** Records that are not acknowledged. */
  waiting: number;
  /** Records that were acknowledged in this run, quarantined ones included. */
  acknowledged: number;
  /** How many of them are log lines: those belong to the agent and are stored whatever happens to the session. */
  logLines: number;
  quarantined: number;
  /** Why the first of them was quarantined. */
  quarantineReason: string | null;
  /** What to do where the token is refused. */
  adviceOnToken: string;
}

/** @returns the one line to fail with, or null if the session is there to be looked at */
export function replayFailure(outcome: ReplayOutcome): string | null {
  const { url, trouble, waiting, acknowledged, logLines, quarantined, quarantineReason, adviceOnToken } = outcome;
  if (waiting > 0 || trouble !== null) {
    const kept = `${waiting} records are kept in the outbox, and the same command sends them`;
    if (trouble === null) return `${url} did not acknowledge everything (${kept})`;
    if (trouble.kind === 'unavailable') return `${url} can't be reached: ${trouble.message} (${kept})`;
    const advice = trouble.kind === 'unauthorized' ? `; ${adviceOnToken}` : '';
    return `${url}: ${trouble.message} (${kept}${advice})`;
  }
  // The agent's arrival is stored whatever happens to its events.
  if (quarantined > 0 && quarantined >= acknowledged - logLines - 1) {
    return `${url} put every record into quarantine: ${quarantineReason}; name another --session or --agent`;
  }
  return null;
}
