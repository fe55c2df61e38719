'use client';

import { useCallback, useSyncExternalStore } from 'react';

/** Where a browser keeps nothing (private windows, a full disk), a choice lasts as long as the page. */
const unkept = new Map<string, string>();
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Other tabs say what they have stored. */
function subscribeToAll(listener: () => void): () => void {
  addEventListener('storage', listener);
  const unsubscribe = subscribe(listener);
  return () => {
    removeEventListener('storage', listener);
    unsubscribe();
  };
}

/** What is remembered now, by whichever tab. */
export function readStored(key: string): string | null {
  try {
    return unkept.get(key) ?? localStorage.getItem(key);
  } catch {
    return unkept.get(key) ?? null;
  }
}

export function writeStored(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
    unkept.delete(key);
  } catch {
    unkept.set(key, value);
  }
  for (const notify of listeners) notify();
}

/**
 * A choice this browser remembers. Null on the server, and until something was chosen.
 *
 * @param follows whether it changes here as soon as another tab changes it
 */
export function useStored(key: string, follows = false): [string | null, (value: string) => void] {
  const value = useSyncExternalStore(
    follows ? subscribeToAll : subscribe,
    () => readStored(key),
    () => null,
  );
  return [value, useCallback((next: string) => writeStored(key, next), [key])];
}
