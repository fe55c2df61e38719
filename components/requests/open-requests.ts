import type { RequestItem, Turn } from '@/lib/protocol/read-models';

/** The requests nobody has answered, oldest first. @param count how many there are: the search ends with them */
export function openRequests(turns: readonly Turn[], count: number): RequestItem[] {
  const open: RequestItem[] = [];
  for (let at = turns.length - 1; at >= 0 && open.length < count; at--) {
    for (const item of turns[at]?.items.toReversed() ?? []) {
      if (item.kind === 'request' && item.outcome === null) open.push(item);
    }
  }
  return open.reverse();
}
