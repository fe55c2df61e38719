import { useHydrated } from '@/components/ui/now';
import type { RemovedHistory } from '@/lib/protocol/read-models';

/** That the oldest turns are gone: how many, and on which day of the reader's calendar the last of them went. */
export function RemovedTurns({ removed: { turns, at } }: { removed: RemovedHistory }) {
  // The server does not know the reader's time zone.
  const isDayKnown = useHydrated();
  const time = new Date(at);
  return (
    <>
      {countWords(turns)} removed
      {isDayKnown && (
        <>
          {' on '}
          <time dateTime={time.toISOString()} title={time.toLocaleString()}>
            {time.getDate()} {time.toLocaleDateString('en', { month: 'short' })} {time.getFullYear()}
          </time>
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
