'use client';

import { dateOf } from './day';
import { useClock, useHydrated } from './now';

/** A time of the reader's calendar, in the fewest words that tell it: `14:03`, `24 Nov 14:03`, `24 Nov 2025 14:03`. */
export function Moment({ at, seconds = false, className }: { at: number; seconds?: boolean; className?: string }) {
  const isKnown = useHydrated();
  const date = useClock((now) => (isKnown ? dateOf(at, now) : null));
  const time = new Date(at);
  const clock = time.toLocaleTimeString('en-GB', {
    hour: '2-digit',
    minute: '2-digit',
    ...(seconds ? { second: '2-digit' } : {}),
  });
  return (
    <time className={className} dateTime={time.toISOString()} title={isKnown ? time.toLocaleString() : undefined}>
      {/* The server does not know the reader's time zone. */}
      {isKnown ? `${date} ${clock}`.trim() : '\u2007\u2007:\u2007\u2007'}
    </time>
  );
}
