'use client';

import { useCallback, useSyncExternalStore } from 'react';
import { readStored, subscribeToStored, writeStored } from './browser-storage';

/** Also calls back for changes made in other tabs. */
export function subscribeAnywhere(listener: () => void): () => void {
  addEventListener('storage', listener);
  const unsubscribe = subscribeToStored(listener);
  return () => {
    removeEventListener('storage', listener);
    unsubscribe();
  };
}

/** `useStored` that follows changes made in other tabs. */
export function useStoredAnywhere(key: string): [string | null, (value: string) => void] {
  const value = useSyncExternalStore(
    subscribeAnywhere,
    () => readStored(key),
    () => null,
  );
  return [value, useCallback((next: string) => writeStored(key, next), [key])];
}
