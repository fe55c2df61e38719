'use client';

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
      className={
        isRelative
          ? 'w-[4ch] shrink-0 text-right text-ink-3'
          : // the date and the milliseconds are for wider places
            'max-w-[8ch] shrink-0 overflow-hidden whitespace-pre text-ink-3 @2xl:max-w-none'
      }
    >
      {text}
    </time>
  );
}
