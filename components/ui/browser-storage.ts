import { BASE_PATH } from '@/lib/protocol/base-path.mjs';

let person: string | null = null;
let isOver = false;

/** Dashboards at other paths of the same origin have keys of their own. */
const PREFIX = `interlude${BASE_PATH}:`;
/** Holds the id of the person whose page was loaded last, in any tab. When it changes, the other tabs leave. */
const CURRENT = `${PREFIX}current`;
/** Keys of earlier versions, which name no person. */
const NAMELESS = [
  ...['interlude-', 'interlude.', 'interlude:fold', 'interlude:log-settings'],
  ...[`${PREFIX}draft:`, `${PREFIX}outgoing:`],
];

/** True if this page wrote `CURRENT`. A store that is full or missing can't announce another person. */
let isAnnounced = false;

/**
 * The person this page was rendered for, by the `id` of `GET /me`. Null before the console renders, and in an embed:
 * without a person, nothing is stored.
 */
export function personId(): string | null {
  return person;
}

/** Makes the page that of `id`, and announces it to no other tab. */
export function beginPage(id: string | null): void {
  person = id;
  isOver = false;
}

/** From here on the page stores nothing: its person signed out, or another person has signed in. */
export function endPage(): void {
  isOver = true;
}

export function hasPageEnded(): boolean {
  return isOver;
}

/**
 * The browser's store, of which a page uses only its own person's keys (`storageKey`). The theme is the one exception:
 * it names nothing, and `next-themes` keeps it for everybody who uses the browser.
 *
 * @returns null if nothing may be stored: no person, private windows, sites that may not store
 */
export function browserStorage(): Storage | null {
  return person === null || isOver ? null : wholeStorage();
}

/** @param name the same name is another key for another person */
export function storageKey(name: string): string {
  return `${PREFIX}of:${encodeURIComponent(person ?? '')}:${name}`;
}

/** Makes the page that of `id`, announces that to other tabs, and removes what earlier versions stored. */
export function storeAs(id: string): void {
  beginPage(id);
  const storage = wholeStorage();
  try {
    storage?.setItem(CURRENT, id);
    isAnnounced = storage !== null;
  } catch {
    // full: the server still refuses what another person composed
  }
  removeKeys(storage, isNameless);
}

/** True once this page's person has signed out, or another person has signed in, in another tab. */
export function isSuperseded(): boolean {
  return isAnnounced && wholeStorage()?.getItem(CURRENT) !== person;
}

/** Removes everything that this dashboard has stored in this browser, of all people. */
export function forgetAllPeople(): void {
  removeKeys(wholeStorage(), (key) => key.startsWith(PREFIX) || isNameless(key));
}

function isNameless(key: string): boolean {
  return NAMELESS.some((start) => key.startsWith(start));
}

function removeKeys(storage: Storage | null, isMeant: (key: string) => boolean): void {
  for (const key of keysOf(storage)) if (isMeant(key)) storage?.removeItem(key);
}

export function keysOf(storage: Storage | null): string[] {
  return storage === null ? [] : Array.from({ length: storage.length }, (_, at) => storage.key(at) ?? '');
}

function wholeStorage(): Storage | null {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}
