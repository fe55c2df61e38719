import { countRedacted } from '@interlude/protocol/projections/count-redacted';
import type { Turn } from '@interlude/protocol/read-models';
import { memo } from 'react';
import { OVER } from '@/components/ui/in-view';

/** To a reader who is told no secrets: how many are left out of what is loaded. Nothing moves for it. */
export const RedactedNote = memo(function RedactedNote({ turns }: { turns: readonly Turn[] }) {
  const count = countRedacted(turns);
  return (
    <p
      {...OVER}
      role="status"
      aria-label="Secrets"
      className="pointer-events-none absolute top-1 right-4 z-[5] rounded bg-ground px-1.5 text-2xs text-ink-3 empty:hidden"
    >
      {count === 0 ? null : wordsOf(count)}
    </p>
  );
});

function wordsOf(count: number): string {
  return count === 1 ? '1 secret was taken out' : `${count.toLocaleString('en')} secrets were taken out`;
}
