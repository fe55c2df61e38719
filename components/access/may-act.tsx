'use client';

import { createContext, type ReactNode, useContext } from 'react';

interface Acting {
  may: boolean;
  /** Said in the place of what one writes in. */
  why: string | null;
  /** Whether requests are answered here. In a frame a click may be stolen: there they are answered in a window of ours. */
  answersHere: boolean;
}

const ActingContext = createContext<Acting>({ may: true, why: null, answersHere: true });

/** Whether who looks at this page may ask anything of agents, or change anything. The server decides; this says so. */
export function MayActProvider({ children, ...acting }: Acting & { children: ReactNode }) {
  return <ActingContext value={acting}>{children}</ActingContext>;
}

export function useMayAct(): boolean {
  return useContext(ActingContext).may;
}

export function useActing(): Acting {
  return useContext(ActingContext);
}
