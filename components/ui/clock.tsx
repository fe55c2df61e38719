'use client';

import { formatAgo, formatClock } from './duration';
import { useLiveness } from './liveness';
import { useClock, useHydrated } from './now';

/**
 * Running time since `since`. Stops when the activity's liveness does.
 *
 * @param goesOn keeps running regardless, for waits on a person
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

/** Time since `at`, such as `4m`. */
export function Ago({ at, className }: { at: number; className?: string }) {
  const text = useClock((now) => formatAgo(now - at));
  const hydrated = useHydrated();
  return (
    <time className={className} dateTime={isoTime(at)} title={hydrated ? new Date(at).toLocaleString() : undefined}>
      {text}
    </time>
  );
}

/** Local time of day: `14:03`, or `14:03:21`. */
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

/** Undefined for a date outside the browser's range, which a runner's clock may report. */
function isoTime(at: number): string | undefined {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

/** Agents are often silent for less than this. */
const NOTABLE_MS = 60_000;

/** `last heard 4m ago`, or empty while that is recent: an agent that is shown as working may be gone. */
export function useLastHeard(at: number): string {
  return useClock((now) => (now - at < NOTABLE_MS ? '' : `last heard ${formatAgo(now - at)} ago`));
}

export function LastHeard({ at, className }: { at: number; className?: string }) {
  const words = useLastHeard(at);
  return words === '' ? null : <span className={className}>{words}</span>;
}
