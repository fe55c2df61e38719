'use client';

import { useCallback, useSyncExternalStore } from 'react';
import { STORAGE_PREFIX as PREFIX, storageKeyOf } from './storage-key';

let person: string | null = null;
let hasEnded = false;

/** Holds the id of the user whose page was loaded last, in any tab. When it changes, other tabs reload. */
const CURRENT = `${PREFIX}current`;
/** Keys of earlier versions, which contain no user id. */
const LEGACY_KEYS = [
  ...['interlude-', 'interlude.', 'interlude:fold', 'interlude:log-settings'],
  ...[`${PREFIX}draft:`, `${PREFIX}outgoing:`],
];

/** True if this page wrote `CURRENT`. If storage is full or missing, a change of user can't be detected. */
let isAnnounced = false;

/**
 * The user this page was rendered for, as the `id` from `GET /me`. Null before the console renders, and in an embed:
 * without a user, nothing is stored.
 */
export function personId(): string | null {
  return person;
}

/** Sets the user of this page without announcing it to other tabs. */
export function setPerson(id: string | null): void {
  person = id;
  hasEnded = false;
}

/** Stops the page from storing anything, after its user has signed out or another user has signed in. */
function endPage(): void {
  hasEnded = true;
}

export function hasPageEnded(): boolean {
  return hasEnded;
}

/**
 * The browser's storage. A page uses only the keys of its own user (`storageKey`), except for the theme, which is
 * stored for the whole browser.
 *
 * @returns null without a user, after the page has stopped, or if the browser blocks storage
 */
export function browserStorage(): Storage | null {
  return person === null || hasEnded ? null : originStorage();
}

/** Key of a value of this page's user. */
export function storageKey(name: string): string {
  return storageKeyOf(person ?? '', name);
}

/** Sets the user of this page, announces it to other tabs, and removes what earlier versions stored. */
export function claimStorage(id: string): void {
  setPerson(id);
  const storage = originStorage();
  try {
    storage?.setItem(CURRENT, id);
    isAnnounced = storage !== null;
    // Applies this user's density: see appearance-script.ts.
    (Reflect.get(window, 'interludeAppearance') as undefined | (() => void))?.();
  } catch {
    // Storage is full. The server still rejects requests composed by another user.
  }
  removeKeys(storage, isLegacyKey);
}

/** True once this page's user has signed out, or another user has signed in, in another tab. */
export function isSuperseded(): boolean {
  return isAnnounced && originStorage()?.getItem(CURRENT) !== person;
}

/** Removes everything that this dashboard has stored in this browser, for all users. */
export function clearStorage(): void {
  removeKeys(originStorage(), (key) => key.startsWith(PREFIX) || isLegacyKey(key));
}

function isLegacyKey(key: string): boolean {
  return LEGACY_KEYS.some((start) => key.startsWith(start));
}

function removeKeys(storage: Storage | null, isMeant: (key: string) => boolean): void {
  for (const key of keysOf(storage)) if (isMeant(key)) storage?.removeItem(key);
}

export function keysOf(storage: Storage | null): string[] {
  return storage === null ? [] : Array.from({ length: storage.length }, (_, index) => storage.key(index) ?? '');
}

function originStorage(): Storage | null {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}

const listeners = new Set<() => void>();

/**
 * Calls back when the page stops, to remove what would stay on screen, such as notifications. @returns a function that
 * unsubscribes
 */
export function onLeave(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Stops storing and sending, and removes the prompt about unfinished uploads. */
export function stopPage(): void {
  if (hasPageEnded()) return;
  endPage();
  for (const listener of listeners) listener();
  addEventListener('beforeunload', (event) => event.stopImmediatePropagation(), { capture: true });
}

/** Stops the page, hides it immediately and reloads it for the user who is signed in now. */
export function leavePage(): void {
  stopPage();
  document.documentElement.style.display = 'none';
  location.reload();
}

/** Values that the browser could not store (private window, full disk). They last as long as the page. */
const unkept = new Map<string, string>();
const storedListeners = new Set<() => void>();

export function subscribeToStored(listener: () => void): () => void {
  storedListeners.add(listener);
  return () => storedListeners.delete(listener);
}

/** The user's stored value, from any tab. */
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
  for (const notify of storedListeners) notify();
}

/** A setting stored in the browser for this user. Null on the server and until it is set. */
export function useStored(key: string): [string | null, (value: string) => void] {
  const value = useSyncExternalStore(
    subscribeToStored,
    () => readStored(key),
    () => null,
  );
  return [value, useCallback((next: string) => writeStored(key, next), [key])];
}
