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
}

const LivenessContext = createContext<Liveness>({ stopped: null, isAway: false });
const LastSignalContext = createContext<number | null>(null);

export function LivenessProvider(props: {
  stoppedAt: number | null;
  why: string;
  isAway: boolean;
  /** Time of the last record, epoch milliseconds. */
  lastSignalAt: number | null;
  children: ReactNode;
}) {
  const { stoppedAt, why, isAway, lastSignalAt, children } = props;
  const liveness = useMemo(
    () => ({ stopped: stoppedAt === null ? null : { at: stoppedAt, why }, isAway }),
    [stoppedAt, why, isAway],
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
