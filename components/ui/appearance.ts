'use client';

import { useSyncExternalStore } from 'react';
import { CHANGED, DENSITY_KEY, THEME_KEY } from './appearance-script';
import { readStored, writeStored } from './browser-storage';

export type Theme = 'system' | 'light' | 'dark';
export type Density = 'comfortable' | 'compact';

/** Set if the browser could not store the theme: it then lasts as long as the page. */
let unkept: Theme | null = null;

function apply(): void {
  const run: unknown = Reflect.get(window, 'interludeAppearance');
  if (typeof run === 'function') run(unkept ?? undefined, storedDensity());
}

function subscribe(listener: () => void): () => void {
  addEventListener(CHANGED, listener);
  return () => removeEventListener(CHANGED, listener);
}

function storedTheme(): Theme {
  let stored: string | null = unkept;
  try {
    stored ??= localStorage.getItem(THEME_KEY);
  } catch {
    // The browser blocks storage.
  }
  return stored === 'light' || stored === 'dark' ? stored : 'system';
}

function setTheme(theme: Theme): void {
  unkept = theme;
  try {
    localStorage.setItem(THEME_KEY, theme);
    unkept = null;
  } catch {
    // Storage is full or blocked: `unkept` has the theme.
  }
  apply();
}

export function useTheme(): [Theme, (theme: Theme) => void] {
  return [useSyncExternalStore(subscribe, storedTheme, () => 'system'), setTheme];
}

function storedDensity(): Density {
  return readStored(DENSITY_KEY) === 'compact' ? 'compact' : 'comfortable';
}

function setDensity(density: Density): void {
  writeStored(DENSITY_KEY, density);
  apply();
}

export function useDensity(): [Density, (density: Density) => void] {
  return [useSyncExternalStore(subscribe, storedDensity, () => 'comfortable'), setDensity];
}
