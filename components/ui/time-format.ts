'use client';

import { useSyncExternalStore } from 'react';
import { readStored } from './browser-storage';
import { TIMES_KEY } from './storage-key';
import { subscribeAnywhere } from './use-stored-anywhere';

/** The reader's choices for times, stored in the browser. */
export interface TimeSettings {
  hours: '24' | '12' | 'browser';
  /** BCP 47 tag of the language of dates; empty for the browser's. */
  language: string;
  /** True to show `14:03` instead of `4m` in lists. */
  isAbsolute: boolean;
}

/** The page is in English, and operators compare times with logs. */
const DEFAULT: TimeSettings = { hours: '24', language: 'en-GB', isAbsolute: false };

const two = (value: number) => String(value).padStart(2, '0');

/** Formats the page's times and dates. Invalid dates, which a runner's clock may report, become a dash. */
export class TimeFormat {
  readonly settings: TimeSettings;
  /** The language of dates, for the `lang` attribute. */
  readonly language: string;
  readonly is12Hour: boolean;
  readonly #made = new Map<string, Intl.DateTimeFormat>();

  constructor(settings: TimeSettings) {
    this.settings = settings;
    this.language = new Intl.DateTimeFormat(settings.language || undefined).resolvedOptions().locale;
    this.is12Hour = settings.hours === 'browser' ? browserHours().hour12 === true : settings.hours === '12';
  }

  /** `14:03`, `14:03:21`, `2:03 pm`. */
  time(at: number, seconds = false): string {
    const date = new Date(at);
    if (Number.isNaN(date.getTime())) return '–';
    const part = seconds ? '2-digit' : undefined;
    if (this.is12Hour) return this.in(date, { hour: 'numeric', minute: '2-digit', second: part, hour12: true });
    const parts = [date.getHours(), date.getMinutes(), ...(seconds ? [date.getSeconds()] : [])];
    return parts.map(two).join(':');
  }

  /** `24 Nov`, with the year unless it is this one; empty for today. */
  date(at: number, now: number): string {
    const date = new Date(at);
    if (isSameDay(date, new Date(now))) return '';
    return this.in(date, { day: 'numeric', month: 'short', year: yearUnless(date, now) });
  }

  /** `Tuesday 24 November 2025, 14:03:21`, for titles. */
  full(at: number): string {
    return `${this.named(new Date(at), 'numeric')}, ${this.time(at, true)}`;
  }

  /** `Friday 20 November` */
  named(date: Date, year: 'numeric' | undefined): string {
    const words = this.in(date, { weekday: 'long', day: 'numeric', month: 'long', year });
    // Only dates with a year have a comma in British English.
    return this.language === 'en-GB' ? words.replace(',', '') : words;
  }

  /** The local parts are formatted as UTC: a kept `Intl.DateTimeFormat` would not follow a change of the time zone. */
  in(date: Date, options: Intl.DateTimeFormatOptions): string {
    if (Number.isNaN(date.getTime())) return '–';
    const key = JSON.stringify(options);
    let format = this.#made.get(key);
    if (format === undefined) {
      format = new Intl.DateTimeFormat(this.language, { ...options, timeZone: 'UTC' });
      this.#made.set(key, format);
    }
    const [hours, minutes, seconds] = [date.getHours(), date.getMinutes(), date.getSeconds()];
    return format.format(Date.UTC(date.getFullYear(), date.getMonth(), date.getDate(), hours, minutes, seconds));
  }
}

function browserHours(): Intl.ResolvedDateTimeFormatOptions {
  return new Intl.DateTimeFormat(undefined, { hour: 'numeric' }).resolvedOptions();
}

export function isSameDay(one: Date, other: Date): boolean {
  return one.toDateString() === other.toDateString();
}

export function yearUnless(date: Date, now: number): 'numeric' | undefined {
  return date.getFullYear() === new Date(now).getFullYear() ? undefined : 'numeric';
}

/** Failure: unknown or invalid settings are ignored. */
function settingsOf(stored: string | null): TimeSettings {
  try {
    const { hours, language, isAbsolute } = { ...DEFAULT, ...JSON.parse(stored ?? '{}') };
    return {
      hours: hours === '12' || hours === 'browser' ? hours : '24',
      language: language === '' ? '' : (Intl.getCanonicalLocales(String(language))[0] ?? ''),
      isAbsolute: isAbsolute === true,
    };
  } catch {
    return DEFAULT;
  }
}

let parsed: { stored: string | null; format: TimeFormat } | null = null;

/** The format that the reader has chosen. Read it where it is used, because it can change. */
export function timeFormat(): TimeFormat {
  const stored = readStored(TIMES_KEY);
  if (parsed?.stored !== stored) parsed = { stored, format: new TimeFormat(settingsOf(stored)) };
  return (parsed as { format: TimeFormat }).format;
}

/** The reader's format; null on the server and while hydrating, when the time zone is unknown. */
export function useTimeFormat(): TimeFormat | null {
  return useSyncExternalStore(subscribeAnywhere, timeFormat, () => null);
}
