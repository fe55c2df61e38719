'use client';

import { useCallback, useSyncExternalStore } from 'react';
import { browserStorage, storageKey } from './browser-storage';

/** Where a browser keeps nothing (private windows, a full disk), a choice lasts as long as the page. */
const unkept = new Map<string, string>();
const listeners = new Set<() => void>();

export function subscribeToStored(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** What this person chose last, in whichever tab. */
export function readStored(key: string): string | null {
  try {
    return unkept.get(key) ?? browserStorage()?.getItem(storageKey(key)) ?? null;
  } catch {
    return unkept.get(key) ?? null;
  }
}

export function writeStored(key: string, value: string): void {
  unkept.set(key, value);
  try {
    const storage = browserStorage();
    storage?.setItem(storageKey(key), value);
    if (storage) unkept.delete(key);
  } catch {
    // full: it lasts as long as the page
  }
  for (const notify of listeners) notify();
}

/** A choice this browser remembers for its person. Null on the server, and until something was chosen. */
export function useStored(key: string): [string | null, (value: string) => void] {
  const value = useSyncExternalStore(
    subscribeToStored,
    () => readStored(key),
    () => null,
  );
  return [value, useCallback((next: string) => writeStored(key, next), [key])];
}
