import type { RemovedHistory } from '@interlude/protocol/read-models';
import { CalendarDay } from '@/components/ui/calendar-day';
import { useHydrated } from '@/components/ui/now';

/**
 * That the oldest turns are gone: how many, and on which day of the reader's calendar the last of them went. On which
 * days others went before is not kept.
 */
export function RemovedTurns({ removed: { turns, at } }: { removed: RemovedHistory }) {
  const isDayKnown = useHydrated();
  return (
    <>
      {countWords(turns)} removed
      {isDayKnown && (
        <>
          {turns === 1 ? ' on ' : ' on or before '}
          <CalendarDay at={at} />
        </>
      )}
    </>
  );
}

/** What stood outside turns is not counted. */
function countWords(turns: number): string {
  if (turns === 0) return 'Older entries were';
  return turns === 1 ? '1 older turn was' : `${turns.toLocaleString('en')} older turns were`;
}
