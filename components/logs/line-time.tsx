'use client';

import { clsx } from 'clsx';
import { formatAgo } from '@/components/ui/duration';
import { useHydrated, useNow } from '@/components/ui/now';
import { formatLogTime, fullLogTime, type TimeStyle } from './log-time';

const UNKNOWN = (
  <>
    {'        '}
    <span className="@max-2xl:hidden">{'    '}</span>
  </>
);

/** When a line was written, by the runner's clock. */
export function LineTime({ at, style }: { at: number; style: TimeStyle }) {
  const { isRelative, isUtc } = style;
  const isHydrated = useHydrated();
  const text = useNow((now) => (isRelative ? formatAgo(now - at) : formatLogTime(at, isUtc, now)));
  // the reader's time zone is not the server's
  if (!isHydrated && !isUtc) return <time className="shrink-0 whitespace-pre @max-2xl:mr-[1ch]">{UNKNOWN}</time>;
  return (
    <time
      title={fullLogTime(at, isUtc)}
      className={clsx('shrink-0 text-ink-3 @max-2xl:mr-[1ch]', isRelative && 'w-[4ch] text-right')}
    >
      {isRelative ? text : text.slice(0, -4)}
      {/* milliseconds are for where there is room */}
      {!isRelative && <span className="@max-2xl:hidden">{text.slice(-4)}</span>}
    </time>
  );
}
