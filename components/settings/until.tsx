'use client';

import { useHydrated, useServerNow } from '@/components/ui/clock';
import { inWords } from './span-words';

/** When something ends, by the server's clock, which ends it. */
export function Until({ at, className }: { at: number; className?: string }) {
  const words = useServerNow((now) => inWords(at - now));
  const isKnown = useHydrated();
  return (
    <time
      className={className}
      dateTime={new Date(at).toISOString()}
      title={isKnown ? new Date(at).toLocaleString() : undefined}
    >
      {words}
    </time>
  );
}
