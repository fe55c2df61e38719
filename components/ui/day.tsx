'use client';

import { formatDuration, isLate } from '@interlude/protocol/time';
import type { ReactNode } from 'react';
import { Ago, isoTime, Time, useClock, useServerTime } from './clock';
import { useLiveness } from './liveness';
import { isSameDay, type TimeFormat, useTimeFormat, yearUnless } from './time-format';

/** Local time, with the date unless it is today: `14:03`, `24 Nov 14:03`, `24 Nov 2025 14:03`. */
export function Moment({ at, seconds = false, className }: { at: number; seconds?: boolean; className?: string }) {
  const format = useTimeFormat();
  const date = useClock((now) => format?.date(at, now));
  return (
    <Time at={at} className={className} local={seconds ? 'ds' : 'd'}>
      {format === null ? '\u2007\u2007:\u2007\u2007' : `${date} ${format.time(at, seconds)}`.trim()}
    </Time>
  );
}

/**
 * `27 Nov 16:01, reported 8 min ago`, for a record that reached the server late; else the children.
 *
 * @param what words before the time
 * @param at when it happened, on the runner's clock; undefined for a record that was not late
 * @param isServerTime true if `at` is on the server's clock
 */
export function LateReport(props: {
  what?: string;
  at: number | undefined;
  isServerTime?: boolean;
  reportedAt: number;
  children: ReactNode;
}) {
  const { what, at = Number.POSITIVE_INFINITY, isServerTime = false, reportedAt, children } = props;
  const recordAt = useServerTime(at);
  const happenedAt = isServerTime ? at : recordAt;
  if (!isLate(happenedAt, reportedAt)) return children;
  return (
    <>
      {what} <Moment at={happenedAt} />, reported <Ago at={reportedAt} inWords />
    </>
  );
}

/**
 * Running time since `since`, a time of the agent's records. Stops when the activity's liveness does.
 *
 * @param isServerTime true if `since` is on the server's clock
 * @param alwaysRuns ignores the liveness, for waits on a person
 */
export function RunningClock(props: {
  since: number;
  isServerTime?: boolean;
  alwaysRuns?: boolean;
  className?: string;
}) {
  const { since, isServerTime = false, alwaysRuns = false, className } = props;
  const liveness = useLiveness();
  const startedAt = isServerTime ? since : since - liveness.skewMs;
  const stopped = alwaysRuns ? null : liveness.stopped;
  const text = useClock((now) => formatDuration(Math.min(now, stopped?.at ?? now) - startedAt, true));
  return (
    <time className={className} dateTime={isoTime(startedAt)} title={stopped?.why}>
      {text}
    </time>
  );
}

/** `Ago` in words for a time of the agent's records. */
export function RecordAgo({ at, className }: { at: number; className?: string }) {
  return <Ago at={useServerTime(at)} inWords {...(className !== undefined && { className })} />;
}

/** True if two times fall on different local days; false if one is invalid. */
export function isOtherDay(a: number, b: number): boolean {
  const [one, other] = [new Date(a), new Date(b)];
  return !Number.isNaN(one.getTime()) && !Number.isNaN(other.getTime()) && !isSameDay(one, other);
}

/** Local date: `24 Nov 2025`. Render it in the browser only, because the server does not know the time zone. */
export function CalendarDay({ at }: { at: number }) {
  return <Time at={at}>{calendarDay(useTimeFormat(), at)}</Time>;
}

/** `24 Nov 2025` */
export function calendarDay(format: TimeFormat | null, at: number): string | undefined {
  return format?.in(new Date(at), { day: 'numeric', month: 'short', year: 'numeric' });
}

/** A day in words: `Today`, `Yesterday`, `Friday 20 November`. */
export function dayInWords(format: TimeFormat, at: number, now: number): string {
  const [date, today] = [new Date(at), new Date(now)];
  // Calendar arithmetic, because a day may have 23 or 25 hours.
  const yesterday = new Date(today.getFullYear(), today.getMonth(), today.getDate() - 1);
  const before = isSameDay(date, today) ? 0 : isSameDay(date, yesterday) ? -1 : null;
  if (before === null) return format.named(date, yearUnless(date, now));
  const words = new Intl.RelativeTimeFormat(format.language, { numeric: 'auto' }).format(before, 'day');
  return words.charAt(0).toLocaleUpperCase(format.language) + words.slice(1);
}
