'use client';

import { useCallback, useMemo } from 'react';
import { useMedia } from '@/components/ui/use-media';
import { useStored } from '@/components/ui/use-stored';

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

/** When a line was written, as the reader wants to see it. */
export interface TimeStyle {
  isRelative: boolean;
  isUtc: boolean;
}

const two = (value: number) => String(value).padStart(2, '0');

/** `14:03:12.345`, with the day before it when that is not today's. A runner's clock may say anything. */
export function formatLogTime(at: number, isUtc: boolean, now: number): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return '??:??:??.???';
  const day = dayOf(date, isUtc);
  const time = `${clockOf(date, isUtc)}.${String(date.getMilliseconds()).padStart(3, '0')}`;
  return day === dayOf(new Date(now), isUtc) ? time : `${day.slice(5)} ${time}`;
}

/** The whole of it, for who wants to be sure. */
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

/** `14:03:12` in the reader's time zone. */
export function clockTime(at: number): string {
  return clockOf(new Date(at), false);
}

/** `2026-11-21T14:03` for a field of a form, in the reader's time zone or in UTC. */
export function fieldTime(at: number, isUtc: boolean): string {
  const date = new Date(at);
  return `${dayOf(date, isUtc)}T${clockOf(date, isUtc)}`;
}

/** @returns null if the field is empty */
export function timeFromField(text: string, isUtc: boolean): number | null {
  if (text === '') return null;
  const at = Date.parse(isUtc ? `${text}Z` : text);
  return Number.isNaN(at) || at < 0 ? null : at;
}
