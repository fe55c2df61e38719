'use client';

import { createContext, type ReactNode, useContext } from 'react';

interface Acting {
  may: boolean;
  /** Shown in place of the composer. */
  why: string | null;
  /** False in frames, where requests are answered in a new window because of clickjacking. */
  answersHere: boolean;
}

const ActingContext = createContext<Acting>({ may: true, why: null, answersHere: true });

/** Provides the reader's permission to act. The server enforces it. */
export function MayActProvider({ children, ...acting }: Acting & { children: ReactNode }) {
  return <ActingContext value={acting}>{children}</ActingContext>;
}

export function useMayAct(): boolean {
  return useContext(ActingContext).may;
}

export function useActing(): Acting {
  return useContext(ActingContext);
}
