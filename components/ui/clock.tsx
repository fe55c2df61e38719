'use client';

import { formatAgo, formatClock } from './duration';
import { useLiveness } from './liveness';
import { useClock, useHydrated } from './now';

/**
 * Time since `since`, running; where nobody tells any more whether it goes on, up to when it was last known to.
 *
 * @param goesOn it does, whoever tells: a person is waited for until they answer
 */
export function RunningClock(props: { since: number; goesOn?: boolean; className?: string }) {
  const { since, goesOn = false, className } = props;
  const liveness = useLiveness();
  const stopped = goesOn ? null : liveness.stopped;
  const text = useClock((now) => formatClock(Math.min(now, stopped?.at ?? now) - since));
  return (
    <time className={className} dateTime={isoTime(since)} title={stopped?.why}>
      {text}
    </time>
  );
}

/** How long ago `at` was, ticking. */
export function Ago({ at, className }: { at: number; className?: string }) {
  const text = useClock((now) => formatAgo(now - at));
  const hydrated = useHydrated();
  return (
    <time className={className} dateTime={isoTime(at)} title={hydrated ? new Date(at).toLocaleString() : undefined}>
      {text}
    </time>
  );
}

/** The reader's own wall clock: `14:03`, or `14:03:21`. */
export function TimeOfDay({ at, seconds = false, className }: { at: number; seconds?: boolean; className?: string }) {
  const hydrated = useHydrated();
  return (
    <time className={className} dateTime={isoTime(at)} title={hydrated ? new Date(at).toLocaleString() : undefined}>
      {hydrated ? timeOfDay(at, seconds) : `\u2007\u2007:\u2007\u2007${seconds ? ':\u2007\u2007' : ''}`}
    </time>
  );
}

function timeOfDay(at: number, seconds: boolean): string {
  const date = new Date(at);
  const parts = [date.getHours(), date.getMinutes(), ...(seconds ? [date.getSeconds()] : [])];
  return parts.map((part) => String(part).padStart(2, '0')).join(':');
}

/** A runner's clock may say anything; a date outside what a browser knows must not break the page. */
function isoTime(at: number): string | undefined {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

/** A silence shorter than this is how agents work. */
const NOTABLE_MS = 60_000;

/** `last heard 4m ago`, once that is worth a word, else nothing: something that works need not be alive. */
export function useLastHeard(at: number): string {
  return useClock((now) => (now - at < NOTABLE_MS ? '' : `last heard ${formatAgo(now - at)} ago`));
}

export function LastHeard({ at, className }: { at: number; className?: string }) {
  const words = useLastHeard(at);
  return words === '' ? null : <span className={className}>{words}</span>;
}
