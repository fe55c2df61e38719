'use client';

import { clsx } from 'clsx';
import { Time, useServerNow } from '@/components/ui/clock';

/** Time left, by the server’s clock. */
export function Until({ at, className }: { at: number; className?: string }) {
  const words = useServerNow((now) => remainingTime(at - now));
  return (
    <Time at={at} className={clsx('whitespace-nowrap', className)}>
      {words}
    </Time>
  );
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Time left: `in 12 s`, `in 4 min`, `in 5 h`, `in 29 days`. */
export function remainingTime(ms: number): string {
  const span = Math.max(0, ms);
  if (span < MINUTE) return `in ${Math.ceil(span / 1_000)} s`;
  if (span < HOUR) return `in ${Math.floor(span / MINUTE)} min`;
  if (span < 2 * DAY) return `in ${Math.floor(span / HOUR)} h`;
  return `in ${Math.round(span / DAY)} days`;
}

/** A duration: `an hour`, `8 hours`, `7 days`. */
export function spanInWords(ms: number): string {
  const hours = Math.round(ms / HOUR);
  if (hours < 48) return hours === 1 ? 'an hour' : `${hours} hours`;
  return `${Math.round(hours / 24)} days`;
}
