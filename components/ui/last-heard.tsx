'use client';

import { formatAgo } from '@/components/ui/duration';
import { useNow } from '@/components/ui/now';

/** A silence shorter than this is how agents work. */
const NOTABLE_MS = 60_000;

/** `last heard 4m ago`, once that is worth a word: something that works need not be alive. */
export function LastHeard({ at, className }: { at: number; className?: string }) {
  const ago = useNow((now) => (now - at < NOTABLE_MS ? '' : formatAgo(now - at)));
  if (ago === '') return null;
  return <span className={className}>last heard {ago} ago</span>;
}
