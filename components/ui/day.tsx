'use client';

import { localTime, useClock, useHydrated } from './clock';

/** Local time, with the date unless it is today: `14:03`, `24 Nov 14:03`, `24 Nov 2025 14:03`. */
export function Moment({ at, seconds = false, className }: { at: number; seconds?: boolean; className?: string }) {
  const isKnown = useHydrated();
  const date = useClock((now) => (isKnown ? formatShortDate(at, now) : null));
  const time = new Date(at);
  const clock = time.toLocaleTimeString('en-GB', {
    hour: '2-digit',
    minute: '2-digit',
    ...(seconds ? { second: '2-digit' } : {}),
  });
  return (
    <time
      className={className}
      dateTime={time.toISOString()}
      title={isKnown ? time.toLocaleString() : undefined}
      {...(isKnown ? {} : localTime(seconds ? 'ds' : 'd'))}
    >
      {isKnown ? `${date} ${clock}`.trim() : '\u2007\u2007:\u2007\u2007'}
    </time>
  );
}

/** True if two times fall on different local days; false if one is invalid. */
export function isOtherDay(a: number, b: number): boolean {
  const [one, other] = [new Date(a), new Date(b)];
  if (Number.isNaN(one.getTime()) || Number.isNaN(other.getTime())) return false;
  return one.toDateString() !== other.toDateString();
}

/** Local day in words: `Today`, `Yesterday`, `Friday 20 November`, `Friday 20 November 2025`. */
export function formatDay(at: number, now: number): string {
  const [day, today] = [new Date(at), new Date(now)];
  if (day.toDateString() === today.toDateString()) return 'Today';
  // Calendar arithmetic, because a day may have 23 or 25 hours.
  const yesterday = new Date(today.getFullYear(), today.getMonth(), today.getDate() - 1);
  if (day.toDateString() === yesterday.toDateString()) return 'Yesterday';
  const words = `${nameOf(day, 'weekday')} ${day.getDate()} ${nameOf(day, 'month')}`;
  return day.getFullYear() === today.getFullYear() ? words : `${words} ${day.getFullYear()}`;
}

function nameOf(day: Date, part: 'weekday' | 'month'): string {
  return day.toLocaleDateString('en', { [part]: 'long' });
}

/** Short date: empty for today, else `24 Nov` or `24 Nov 2025`. */
function formatShortDate(at: number, now: number): string {
  const [day, today] = [new Date(at), new Date(now)];
  if (day.toDateString() === today.toDateString()) return '';
  const words = `${day.getDate()} ${day.toLocaleDateString('en', { month: 'short' })}`;
  return day.getFullYear() === today.getFullYear() ? words : `${words} ${day.getFullYear()}`;
}

/** Local date: `24 Nov 2025`. Render it in the browser only, because the server does not know the time zone. */
export function CalendarDay({ at }: { at: number }) {
  const time = new Date(at);
  return (
    <time dateTime={time.toISOString()} title={time.toLocaleString()}>
      {time.getDate()} {time.toLocaleDateString('en', { month: 'short' })} {time.getFullYear()}
    </time>
  );
}
