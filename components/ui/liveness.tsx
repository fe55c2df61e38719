'use client';

import { createContext, type ReactNode, useContext, useMemo } from 'react';

/** Whether what is shown below still goes on, as far as anybody knows. */
export interface Liveness {
  /** Nobody tells of it any more: since when, and why in a word or two. Clocks stand still there. */
  stopped: { at: number; why: string } | null;
  /** Nobody is there just now to act on what is asked here: it waits. */
  isAway: boolean;
}

const LivenessContext = createContext<Liveness>({ stopped: null, isAway: false });
const HeardContext = createContext<number | null>(null);

export function LivenessProvider(props: {
  stoppedAt: number | null;
  why: string;
  isAway: boolean;
  /** When something was last heard of it. */
  heardAt: number | null;
  children: ReactNode;
}) {
  const { stoppedAt, why, isAway, heardAt, children } = props;
  const liveness = useMemo(
    () => ({ stopped: stoppedAt === null ? null : { at: stoppedAt, why }, isAway }),
    [stoppedAt, why, isAway],
  );
  return (
    <LivenessContext value={liveness}>
      <HeardContext value={heardAt}>{children}</HeardContext>
    </LivenessContext>
  );
}

export function useLiveness(): Liveness {
  return useContext(LivenessContext);
}

export function useHeardAt(): number | null {
  return useContext(HeardContext);
}
