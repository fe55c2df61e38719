'use client';

import { useCallback, useSyncExternalStore } from 'react';
import { readStored, subscribeToStored, writeStored } from './use-stored';

/** Other tabs say what they have stored. */
function subscribe(listener: () => void): () => void {
  addEventListener('storage', listener);
  const unsubscribe = subscribeToStored(listener);
  return () => {
    removeEventListener('storage', listener);
    unsubscribe();
  };
}

/** A choice this browser remembers for its person, which changes here as soon as any of its tabs changes it. */
export function useStoredAnywhere(key: string): [string | null, (value: string) => void] {
  const value = useSyncExternalStore(
    subscribe,
    () => readStored(key),
    () => null,
  );
  return [value, useCallback((next: string) => writeStored(key, next), [key])];
}
