'use client';

import { useCallback, useSyncExternalStore } from 'react';
import { browserStorage, storageKey } from './browser-storage';

/** Values that the browser could not store (private window, full disk). They last as long as the page. */
const unkept = new Map<string, string>();
const listeners = new Set<() => void>();

export function subscribeToStored(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The person's stored value, from any tab. */
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
    // Storage is full: `unkept` still has the value.
  }
  for (const notify of listeners) notify();
}

/** A setting stored in the browser for this person. Null on the server and until it is set. */
export function useStored(key: string): [string | null, (value: string) => void] {
  const value = useSyncExternalStore(
    subscribeToStored,
    () => readStored(key),
    () => null,
  );
  return [value, useCallback((next: string) => writeStored(key, next), [key])];
}
