'use client';

import { createContext, type ReactNode, useContext, useState, useSyncExternalStore } from 'react';
import { formatAgo, formatAgoLong } from './duration';
import { useLiveness } from './liveness';
import { useTimeFormat } from './time-format';

/** The server's clock at rendering. The first render in the browser uses it, too. */
const RenderedAt = createContext(0);
/** Milliseconds that the server's clock was ahead of the browser's when the page loaded. */
const Offset = createContext(0);

export function NowProvider({ renderedAt, children }: { renderedAt: number; children: ReactNode }) {
  // Too small by the page's transit time: a deadline that has passed by this clock has passed on the server.
  const [offset] = useState(() => (typeof window === 'undefined' ? 0 : renderedAt - Date.now()));
  return (
    <RenderedAt value={renderedAt}>
      <Offset value={offset}>{children}</Offset>
    </RenderedAt>
  );
}

/** Transit time looks like a slow clock: smaller offsets are ignored. */
const ABOUT_RIGHT_MS = 5_000;

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | null = null;
let trueNow = 0;
let frozenAt: number | null = null;

/** Replaces `Offset` after the browser's clock was set. */
let measuredOffset: number | null = null;
/** Constant unless the browser's clock is set or the machine sleeps. */
const drift = () => Date.now() - performance.now();
let lastDrift = 0;
let readServerTime: (() => Promise<number>) | null = null;
let isMeasuring = false;

/**
 * Measures the offset of the browser's clock again whenever that was set. Clocks pause during the request. After a failure
 * the next tick tries again.
 *
 * @param read resolves to the server's time, epoch milliseconds; NaN if the response has none
 * @returns a function that ends it
 */
export function correctClocks(read: () => Promise<number>): () => void {
  readServerTime = read;
  lastDrift = drift();
  return () => {
    readServerTime = null;
    measuredOffset = null;
  };
}

function tick(): void {
  const wasSet = Math.abs(drift() - lastDrift) > ABOUT_RIGHT_MS;
  if (wasSet && readServerTime && !frozenAt) void measureOffset(readServerTime);
  else showTime();
}

async function measureOffset(read: () => Promise<number>): Promise<void> {
  if (isMeasuring) return;
  isMeasuring = true;
  const now = await read().catch(() => Number.NaN);
  isMeasuring = false;
  if (now && readServerTime) {
    measuredOffset = now - Date.now();
    lastDrift = drift();
  }
  showTime();
}

function showTime(): void {
  trueNow = 0;
  for (const notify of listeners) notify();
}

/**
 * Freezes all clocks of the page at the time up to which its data is complete; null lets them run. Nothing else may stop
 * a clock, so that all times on the page are consistent.
 */
export function freezeClocks(at: number | null): void {
  if (at === frozenAt) return;
  frozenAt = at;
  tick();
}

export function clocksFrozenAt(): number | null {
  return frozenAt;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  // All clocks of a page share one timer and render together.
  timer ??= setInterval(tick, 1_000);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0 || timer === null) return;
    clearInterval(timer);
    timer = null;
    trueNow = 0;
  };
}

/**
 * The time up to which the page's data is complete, usually now. Updates every second. By the reader's clock if that is
 * about right, so that two tabs agree; else by the server's.
 *
 * @param derive reduces the time to the part that matters, so that only changes render
 */
export function useClock<Derived>(derive: (now: number) => Derived): Derived {
  return useTime(shownNow, ABOUT_RIGHT_MS, derive);
}

/** `useClock` on the server's clock, for deadlines the server enforces. */
export function useServerNow<Derived>(derive: (now: number) => Derived): Derived {
  return useTime(shownNow, 0, derive);
}

/** True once a time on the server's clock has passed, even while clocks are frozen. */
export function useHasPassed(at: number | null): boolean {
  return useTime(trueTime, 0, (now) => at !== null && now >= at);
}

/** The reader's time, which never freezes, to show how old the page is. */
export function useUnfrozenNow<Derived>(derive: (now: number) => Derived): Derived {
  return useTime(trueTime, Number.POSITIVE_INFINITY, derive);
}

function shownNow(): number {
  return frozenAt ?? trueTime();
}

function trueTime(): number {
  trueNow ||= Date.now();
  return trueNow;
}

/** @param minOffset smaller offsets of the browser's clock are ignored, in milliseconds */
function useTime<Derived>(clock: () => number, minOffset: number, derive: (now: number) => Derived): Derived {
  const renderedAt = useContext(RenderedAt);
  const loadedOffset = useContext(Offset);
  return useSyncExternalStore(
    subscribe,
    () => {
      const offset = measuredOffset ?? loadedOffset;
      return derive(clock() + (Math.abs(offset) < minOffset ? 0 : offset));
    },
    () => derive(renderedAt),
  );
}

/** The time at which the clocks are frozen; null while they run. */
export function useFrozenAt(): number | null {
  return useSyncExternalStore(subscribe, clocksFrozenAt, () => null);
}

const never = () => () => {};

/** True after hydration, when the time zone and the platform are known. */
export function useHydrated(): boolean {
  return useSyncExternalStore(
    never,
    () => true,
    () => false,
  );
}

/**
 * Converts a record's time to the server's clock, so that all ages on a page use one clock. Work is timed from its start,
 * because it continued while its records were in the outbox. States and requests are timed from receipt, because no one
 * could see or answer them earlier.
 */
export function useServerTime(occurredAt: number): number {
  return occurredAt - useLiveness().skewMs;
}

/**
 * A time, with the date in full as its title.
 *
 * @param local lets `localTimes` replace the text before hydration: `d` with the date, `s` with seconds
 */
export function Time(props: {
  at: number;
  className?: string | undefined;
  local?: '' | 's' | 'd' | 'ds';
  children: ReactNode;
}) {
  const { at, className, local, children } = props;
  const format = useTimeFormat();
  return (
    <time
      className={className}
      dateTime={isoTime(at)}
      title={format?.full(at)}
      lang={format?.language}
      {...(format === null && local !== undefined && { 'data-local': local, suppressHydrationWarning: true })}
    >
      {children}
    </time>
  );
}

/**
 * Time since `at`; the time itself, or the date, for readers who prefer that.
 *
 * @param inWords `4 min ago`, for a sentence, instead of `4 min` for a column
 */
export function Ago({ at, inWords = false, className }: { at: number; inWords?: boolean; className?: string }) {
  const format = useTimeFormat();
  const ago = inWords ? formatAgoLong : formatAgo;
  const text = useClock((now) =>
    format?.settings.isAbsolute ? format.date(at, now) || format.time(at) : ago(now - at),
  );
  return (
    <Time at={at} className={className}>
      {text}
    </Time>
  );
}

/** Local time of day: `14:03`, or `14:03:21`. */
export function TimeOfDay({ at, seconds = false, className }: { at: number; seconds?: boolean; className?: string }) {
  const format = useTimeFormat();
  return (
    <Time at={at} className={className} local={seconds ? 's' : ''}>
      {format?.time(at, seconds) ?? `\u2007\u2007:\u2007\u2007${seconds ? ':\u2007\u2007' : ''}`}
    </Time>
  );
}

/** Undefined for a date outside the browser's range, which a runner's clock may report. */
export function isoTime(at: number): string | undefined {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

/** Shorter silences are usual. */
const NOTABLE_MS = 60_000;

/** `last signal 4 min ago`, or empty while that is recent: an agent that is shown as working may be gone. */
export function useLastSignal(at: number): string {
  return useClock((now) => (now - at < NOTABLE_MS ? '' : `last signal ${formatAgoLong(now - at)}`));
}

/** True once `afterMs` have passed since `at`: the work may have ended. False if `at` is null. */
export function useIsSilent(at: number | null, afterMs = NOTABLE_MS): boolean {
  return useClock((now) => at !== null && now - at >= afterMs);
}

export function LastSignal({ at, className }: { at: number; className?: string }) {
  const words = useLastSignal(at);
  return (
    words !== '' && (
      <Time at={at} className={className}>
        {` · ${words}`}
      </Time>
    )
  );
}
