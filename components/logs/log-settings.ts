'use client';

import { useCallback, useMemo } from 'react';
import { useMedia } from '@/components/ui/use-media';
import { useStored } from '@/components/ui/use-stored';
import type { TimeStyle } from './log-time';

/** How a reader likes their logs, for every log they read in this browser. */
export interface LogSettings extends TimeStyle {
  wraps: boolean;
  /** Whether lines that a search does not find stay, dimmed. */
  dims: boolean;
}

export type ChangeLogSettings = (change: Partial<LogSettings>) => void;

/** As far as a server knows. */
export const USUAL: LogSettings = { isRelative: false, isUtc: false, wraps: false, dims: false };

export function useLogSettings(): [LogSettings, ChangeLogSettings] {
  const [stored, store] = useStored('log-settings');
  // on a phone a line that is cut off says next to nothing
  const wraps = useMedia('(max-width: 640px)');
  const settings = useMemo(() => settingsOf(stored, { ...USUAL, wraps }), [stored, wraps]);
  const change = useCallback<ChangeLogSettings>(
    (some) => store(JSON.stringify({ ...settings, ...some })),
    [settings, store],
  );
  return [settings, change];
}

/** Failure: what is not there, or not ours, is as if nothing had been chosen. */
function settingsOf(stored: string | null, otherwise: LogSettings): LogSettings {
  try {
    const chosen = Object.entries(JSON.parse(stored ?? '{}') as object);
    const ours = chosen.filter(([name, value]) => name in otherwise && typeof value === 'boolean');
    return { ...otherwise, ...Object.fromEntries(ours) };
  } catch {
    return otherwise;
  }
}
