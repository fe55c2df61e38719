'use client';

import { formatAgo } from '@/components/ui/duration';
import { useClock } from '@/components/ui/now';

/** A silence shorter than this is how agents work. */
const NOTABLE_MS = 60_000;

/** `last heard 4m ago`, once that is worth a word, else nothing: something that works need not be alive. */
export function useLastHeard(at: number): string {
  return useClock((now) => (now - at < NOTABLE_MS ? '' : `last heard ${formatAgo(now - at)} ago`));
}

export function LastHeard({ at, className }: { at: number; className?: string }) {
  const words = useLastHeard(at);
  return words === '' ? null : <span className={className}>{words}</span>;
}
