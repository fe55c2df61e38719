import { readStored } from '../browser-storage';

/** The reader's changes to the shortcuts, stored in the browser. */
export interface Bindings {
  /** True if shortcuts of a single character are off, for speech input and slips (WCAG 2.1.4). */
  isLettersOff: boolean;
  /** The key that replaces the shortcut's own character, by shortcut. */
  keys: Readonly<Record<string, string>>;
}

export const BINDINGS_KEY = 'shortcuts';
const NONE: Bindings = { isLettersOff: false, keys: {} };

let parsed: { stored: string | null; bindings: Bindings } = { stored: null, bindings: NONE };

/** Failure: unknown or invalid values are ignored. */
export function bindingsOf(stored = readStored(BINDINGS_KEY)): Bindings {
  if (parsed.stored === stored) return parsed.bindings;
  let bindings = NONE;
  try {
    const { isLettersOff, keys } = JSON.parse(stored ?? '{}') as Partial<Bindings>;
    const own = Object.entries(keys ?? {}).filter(([, key]) => typeof key === 'string' && key !== '');
    bindings = { isLettersOff: isLettersOff === true, keys: Object.fromEntries(own) };
  } catch {
    // as if nothing was stored
  }
  parsed = { stored, bindings };
  return bindings;
}

/** True for a character, or a sequence of keys that starts with one (`g i`). */
export function isCharacter(key: string): boolean {
  return key.length === 1 || key[1] === ' ';
}

/** The keys in effect: the reader's key replaces the shortcut's characters. */
export function boundKeys(id: string, keys: readonly string[], { isLettersOff, keys: own }: Bindings): string[] {
  const key = own[id];
  const all = key === undefined ? keys : [key, ...keys.filter((one) => !isCharacter(one))];
  return all.filter((one) => !(isLettersOff && isCharacter(one)));
}

const SIGNS: Record<string, string> = { ArrowDown: '↓', ArrowUp: '↑', Escape: 'Esc', Control: 'Ctrl' };

/** As printed on the key: `Ctrl+.`, `⌘.`, `↓`. */
export function keyLabel(key: string): string {
  const parts = key.split('+').map((part) => SIGNS[part] ?? part);
  return parts.join('+').replace('Meta+', '⌘');
}
