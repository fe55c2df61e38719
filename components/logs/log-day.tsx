import { useClock } from '@/components/ui/clock';
import { dayInWords, isOtherDay } from '@/components/ui/day';
import { OVERLAY } from '@/components/ui/in-view';
import { useTimeFormat } from '@/components/ui/time-format';

/** The local time with the same digits, for a log in UTC. */
function zoned(at: number, isUtc: boolean): number {
  return isUtc ? at + new Date(at).getTimezoneOffset() * 60_000 : at;
}

/** True if two lines were written on different days, in the zone of the log’s times. */
export function isOtherLogDay(a: number, b: number, isUtc: boolean): boolean {
  return isOtherDay(zoned(a, isUtc), zoned(b, isUtc));
}

/**
 * The day of the lines below.
 *
 * @param isOver true over the list, where today needs no words; false in its own row above the first line of a day
 */
export function LogDay({ at, isUtc, isOver = false }: { at: number; isUtc: boolean; isOver?: boolean }) {
  const format = useTimeFormat();
  const words = useClock((now) => {
    if (format === null || (isOver && !isOtherLogDay(at, now, isUtc))) return null;
    return dayInWords(format, zoned(at, isUtc), zoned(now, isUtc));
  });
  if (words === null) return null;
  if (isOver)
    return (
      <span
        {...OVERLAY}
        lang={format?.language}
        className="pointer-events-none absolute top-1 right-6 z-[5] rounded bg-raised px-1.5 text-2xs text-ink-2"
      >
        {words}
      </span>
    );
  return (
    // biome-ignore lint/a11y/useSemanticElements: an hr can't contain text
    <div
      role="separator"
      aria-label={words}
      lang={format?.language}
      className="flex h-6 items-center gap-3 px-3 font-medium text-2xs text-ink-2 sm:px-4"
    >
      {words}
      <span className="h-px flex-1 bg-line" />
    </div>
  );
}
