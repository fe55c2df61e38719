'use client';

import { createContext, useContext } from 'react';

/**
 * Called before a reader unfolds something: they read there now, so the transcript stops following its end and what
 * they opened stays where it is.
 */
export const HoldTail = createContext<() => void>(() => {});

export function useHoldTail(): () => void {
  return useContext(HoldTail);
}
