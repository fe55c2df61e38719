import type { RequestItem, Turn } from '@interlude/protocol/read-models';
import { requestKey } from './request-key';

/**
 * The requests nobody has answered, oldest first.
 *
 * @param count how many there are: the search ends with the turn that has the last of them. It may be older than the
 *   turns are, so of that turn all are taken: else the newest would stand there alone until the count is as new
 */
export function openRequests(turns: readonly Turn[], count: number): RequestItem[] {
  const open: RequestItem[] = [];
  for (let at = turns.length - 1; at >= 0 && open.length < count; at--) {
    for (const item of turns[at]?.items.toReversed() ?? []) {
      if (item.kind === 'request' && item.outcome === null) open.push(item);
    }
  }
  return open.reverse();
}

/** The same request as it is now, open or not; null if the turns have it no more. */
export function findRequest(turns: readonly Turn[], wanted: RequestItem): RequestItem | null {
  const key = requestKey(wanted);
  for (let at = turns.length - 1; at >= 0; at--) {
    const found = turns[at]?.items.find((item) => item.kind === 'request' && requestKey(item) === key);
    if (found?.kind === 'request') return found;
  }
  return null;
}
