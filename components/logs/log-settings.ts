'use client';

import { useSyncExternalStore } from 'react';
import type { TimeStyle } from './log-time';

/** How a reader likes their logs, for every log they read in this browser. */
export interface LogSettings extends TimeStyle {
  wraps: boolean;
  /** Whether lines that a search does not find stay, dimmed. */
  dims: boolean;
}

const KEY = 'interlude:log-settings';
const NARROW = '(max-width: 640px)';
const listeners = new Set<() => void>();
let current: LogSettings | null = null;

const ON_SERVER: LogSettings = { isRelative: false, isUtc: false, wraps: false, dims: false };

/** Failure: where the browser keeps nothing, they last as long as the page. */
function read(): LogSettings {
  let stored: Partial<LogSettings> = {};
  try {
    stored = JSON.parse(localStorage.getItem(KEY) ?? '{}') as Partial<LogSettings>;
  } catch {
    // what is not there, or not ours, is as if nothing had been chosen
  }
  const is = (name: keyof LogSettings, otherwise: boolean) =>
    typeof stored?.[name] === 'boolean' ? (stored[name] as boolean) : otherwise;
  return {
    isRelative: is('isRelative', false),
    isUtc: is('isUtc', false),
    // on a phone a line that is cut off says next to nothing
    wraps: is('wraps', matchMedia(NARROW).matches),
    dims: is('dims', false),
  };
}

export function changeLogSettings(change: Partial<LogSettings>): void {
  current = { ...settings(), ...change };
  try {
    localStorage.setItem(KEY, JSON.stringify(current));
  } catch {
    // see above
  }
  for (const listener of listeners) listener();
}

function settings(): LogSettings {
  current ??= read();
  return current;
}

export function useLogSettings(): LogSettings {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    settings,
    () => ON_SERVER,
  );
}
