'use client';

import { createContext, type ReactNode, useContext, useMemo } from 'react';

/** Liveness of the activity shown below. */
interface Liveness {
  /**
   * Set while nothing reports on the activity: the time at which reports stopped, and a short reason. Its clocks stop
   * there.
   */
  stopped: { at: number; why: string } | null;
  /** True if the agent is offline, so that commands to it are queued. */
  isAway: boolean;
  /** `silent` after a minute without a signal: the activity may have ended. `stalled` if it makes no progress. */
  silence: 'silent' | 'stalled' | null;
  /** Milliseconds that the clock of the agent's runner is ahead of the server's. */
  skewMs: number;
  /** When the server learned of the open turn, epoch milliseconds; null without one. */
  turnReportedAt: number | null;
}

const LivenessContext = createContext<Liveness>({
  stopped: null,
  isAway: false,
  silence: null,
  skewMs: 0,
  turnReportedAt: null,
});
const LastSignalContext = createContext<number | null>(null);

export function LivenessProvider(props: {
  stoppedAt?: number | null;
  why?: string;
  isAway?: boolean;
  silence?: Liveness['silence'];
  skewMs?: number | undefined;
  turnReportedAt?: number | null;
  /** Time of the last record, epoch milliseconds. */
  lastSignalAt?: number | null;
  children: ReactNode;
}) {
  const {
    stoppedAt = null,
    why = '',
    isAway = false,
    silence = null,
    skewMs = 0,
    turnReportedAt = null,
    lastSignalAt = null,
    children,
  } = props;
  const liveness = useMemo(
    () => ({ stopped: stoppedAt === null ? null : { at: stoppedAt, why }, isAway, silence, skewMs, turnReportedAt }),
    [stoppedAt, why, isAway, silence, skewMs, turnReportedAt],
  );
  return (
    <LivenessContext value={liveness}>
      <LastSignalContext value={lastSignalAt}>{children}</LastSignalContext>
    </LivenessContext>
  );
}

export function useLiveness(): Liveness {
  return useContext(LivenessContext);
}

/** Time of the last record, epoch milliseconds; null if unknown. */
export function useLastSignalAt(): number | null {
  return useContext(LastSignalContext);
}
