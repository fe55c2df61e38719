'use client';

import type { Turn } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { dayWords, isOtherDay } from '@/components/ui/day';
import { useHydrated, useNow } from '@/components/ui/now';

/** After a longer pause there is room before a turn. */
const PAUSE_MS = 6 * 3_600_000;
const PAUSE_PX = 20;

type Times = Pick<Turn, 'startedAt'>;

/**
 * The room before a turn, in pixels: by the pause alone, which is the same in every time zone, so that nothing moves
 * when the day is said that only the reader's browser knows.
 */
export function pauseHeight(turn: Times | undefined, before: Times | undefined): number {
  if (turn === undefined || before === undefined) return 0;
  return turn.startedAt - before.startedAt >= PAUSE_MS ? PAUSE_PX : 0;
}

/** The same as a class. */
export function pauseClass(turn: Times, before: Times | undefined): string | undefined {
  return pauseHeight(turn, before) > 0 ? 'pt-5' : undefined;
}

/**
 * The day, above a turn that began on another one than that before it. It stands in the room between the two, and takes
 * none itself.
 *
 * @param before null above the first of all, which says its day unless that is today; undefined if it is not loaded
 */
export function DayLine({ turn, before }: { turn: Times; before: Times | null | undefined }) {
  const hydrated = useHydrated();
  const words = useNow((now) => {
    if (before === undefined || !isOtherDay(turn.startedAt, before?.startedAt ?? now)) return null;
    return dayWords(turn.startedAt, now);
  });
  if (!hydrated || words === null) return null;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a rule can't hold what it says
    <div
      role="separator"
      aria-label={words}
      className={clsx(
        'pointer-events-none absolute right-4 left-2 flex h-4 items-center gap-3 whitespace-nowrap text-2xs sm:right-6 sm:left-[60px]',
        pauseHeight(turn, before ?? undefined) > 0 ? 'top-2' : '-top-1.5',
      )}
    >
      <span className="font-medium text-ink-2">{words}</span>
      <span className="h-px flex-1 bg-line" />
    </div>
  );
}
