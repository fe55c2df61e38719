'use client';

import { useCallback, useSyncExternalStore } from 'react';

/** Where a browser keeps nothing (private windows, a full disk), a choice lasts as long as the page. */
const kept = new Map<string, string>();
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function read(key: string): string | null {
  try {
    return kept.get(key) ?? localStorage.getItem(key);
  } catch {
    return kept.get(key) ?? null;
  }
}

/** A choice this browser remembers. Null on the server, and until something was chosen. */
export function useStored(key: string): [string | null, (value: string) => void] {
  const value = useSyncExternalStore(
    subscribe,
    () => read(key),
    () => null,
  );
  const store = useCallback(
    (next: string) => {
      kept.set(key, next);
      try {
        localStorage.setItem(key, next);
      } catch {}
      for (const notify of listeners) notify();
    },
    [key],
  );
  return [value, store];
}
