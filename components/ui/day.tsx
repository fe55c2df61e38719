'use client';

import { Time, useClock } from './clock';
import { useTimeFormat } from './time-format';

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

/** True if two times fall on different local days; false if one is invalid. */
export function isOtherDay(a: number, b: number): boolean {
  const [one, other] = [new Date(a), new Date(b)];
  if (Number.isNaN(one.getTime()) || Number.isNaN(other.getTime())) return false;
  return one.toDateString() !== other.toDateString();
}

/** Local date: `24 Nov 2025`. Render it in the browser only, because the server does not know the time zone. */
export function CalendarDay({ at }: { at: number }) {
  return <Time at={at}>{useTimeFormat()?.calendarDay(at)}</Time>;
}
