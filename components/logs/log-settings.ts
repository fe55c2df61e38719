'use client';

import { useCallback, useMemo } from 'react';
import { useStored } from '@/components/ui/browser-storage';
import { useMedia } from '@/components/ui/use-media';

/** Display settings of all logs in this browser. */
export interface LogSettings extends TimeStyle {
  wraps: boolean;
  /** True to keep lines that the search doesn't find, dimmed. */
  dims: boolean;
}

export type ChangeLogSettings = (change: Partial<LogSettings>) => void;

/** Settings in the server's markup. */
export const DEFAULT_SETTINGS: LogSettings = { isRelative: false, isUtc: false, wraps: false, dims: false };

export function useLogSettings(): [LogSettings, ChangeLogSettings] {
  const [stored, store] = useStored('log-settings');
  // A cut line is hardly readable on a phone.
  const wraps = useMedia('(max-width: 640px)');
  const settings = useMemo(() => settingsOf(stored, { ...DEFAULT_SETTINGS, wraps }), [stored, wraps]);
  const change = useCallback<ChangeLogSettings>(
    (some) => store(JSON.stringify({ ...settings, ...some })),
    [settings, store],
  );
  return [settings, change];
}

/** Failure: unknown or invalid settings are ignored. */
function settingsOf(stored: string | null, otherwise: LogSettings): LogSettings {
  try {
    const chosen = Object.entries(JSON.parse(stored ?? '{}') as object);
    const ours = chosen.filter(([name, value]) => name in otherwise && typeof value === 'boolean');
    return { ...otherwise, ...Object.fromEntries(ours) };
  } catch {
    return otherwise;
  }
}

export interface TimeStyle {
  isRelative: boolean;
  isUtc: boolean;
}

const two = (value: number) => String(value).padStart(2, '0');

/** `14:03:12.345` or `02:03:12.345 pm`, preceded by the date unless it is today's. */
export function formatLogTime(at: number, isUtc: boolean, now: number, is12Hour = false): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return '??:??:??.???';
  const day = dayOf(date, isUtc);
  const clock = clockOf(date, isUtc);
  const hour = Number(clock.slice(0, 2));
  const millis = `.${String(date.getMilliseconds()).padStart(3, '0')}`;
  const time = is12Hour
    ? `${two(hour % 12 || 12)}${clock.slice(2)}${millis} ${hour < 12 ? 'am' : 'pm'}`
    : clock + millis;
  return day === dayOf(new Date(now), isUtc) ? time : `${day.slice(5)} ${time}`;
}

/** Date and time in full. */
export function fullLogTime(at: number, isUtc: boolean): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return `${at} ms since 1970`;
  if (isUtc) return date.toISOString();
  return `${dayOf(date, false)} ${clockOf(date, false)}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}

function dayOf(date: Date, isUtc: boolean): string {
  const [year, month, day] = isUtc
    ? [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()]
    : [date.getFullYear(), date.getMonth(), date.getDate()];
  return `${String(year).padStart(4, '0')}-${two(month + 1)}-${two(day)}`;
}

function clockOf(date: Date, isUtc: boolean): string {
  const [hours, minutes, seconds] = isUtc
    ? [date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()]
    : [date.getHours(), date.getMinutes(), date.getSeconds()];
  return `${two(hours)}:${two(minutes)}:${two(seconds)}`;
}

/** `2026-11-21T14:03` for a form field, in the reader's time zone or UTC. */
export function fieldTime(at: number, isUtc: boolean): string {
  const date = new Date(at);
  return `${dayOf(date, isUtc)}T${clockOf(date, isUtc)}`;
}

/** @returns null for an empty field */
export function timeFromField(text: string, isUtc: boolean): number | null {
  if (text === '') return null;
  const at = Date.parse(isUtc ? `${text}Z` : text);
  return Number.isNaN(at) || at < 0 ? null : at;
}
