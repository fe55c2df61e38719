'use client';

import { formatAgo, formatClock } from './duration';
import { useHydrated, useNow } from './now';

/** Time since `since`, running. */
export function RunningClock({ since, className }: { since: number; className?: string }) {
  const text = useNow((now) => formatClock(now - since));
  return (
    <time className={className} dateTime={isoTime(since)}>
      {text}
    </time>
  );
}

/** How long ago `at` was, ticking. */
export function Ago({ at, className }: { at: number; className?: string }) {
  const text = useNow((now) => formatAgo(now - at));
  const hydrated = useHydrated();
  return (
    <time className={className} dateTime={isoTime(at)} title={hydrated ? new Date(at).toLocaleString() : undefined}>
      {text}
    </time>
  );
}

/** The reader's own wall clock: `14:03`, with the day before it when it is another one. */
export function TimeOfDay({ at, className }: { at: number; className?: string }) {
  const hydrated = useHydrated();
  return (
    <time className={className} dateTime={isoTime(at)} title={hydrated ? new Date(at).toLocaleString() : undefined}>
      {hydrated ? timeOfDay(at) : '\u2007\u2007:\u2007\u2007'}
    </time>
  );
}

function timeOfDay(at: number): string {
  const date = new Date(at);
  return `${String(date.getHours()).padStart(2, '0')}:${String(date.getMinutes()).padStart(2, '0')}`;
}

/** A runner's clock may say anything; a date outside what a browser knows must not break the page. */
function isoTime(at: number): string | undefined {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}
