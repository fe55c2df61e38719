'use client';

import { clsx } from 'clsx';
import { formatAgo } from '@/components/ui/duration';
import { useNow } from '@/components/ui/now';
import { formatLogTime, fullLogTime, type TimeStyle } from './log-time';

/** When a line was written, by the runner's clock. */
export function LineTime({ at, style }: { at: number; style: TimeStyle }) {
  const { isRelative, isUtc } = style;
  const text = useNow((now) => (isRelative ? formatAgo(now - at) : formatLogTime(at, isUtc, now)));
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
