import type { RequestItem } from '@interlude/protocol/read-models';
import { requestKey } from './request-key';

/**
 * Which request is pinned next to the one that is.
 *
 * Ordering: the oldest goes first. One that has been pinned for long enough to be pressed stays while it is open and
 * out of sight, whatever is found to be older; and while the focus is in it, wherever its place is. One that is over
 * stays as long as the reader has not moved on.
 *
 * @param current what is pinned, as it is now; null if nothing is, or it is known no more
 * @param hidden the open ones whose place is out of sight, oldest first
 * @param isSettled it has been pinned for so long that it takes presses
 * @param stays it is over, and not because this page answered it
 */
export function nextPinned(state: {
  current: RequestItem | null;
  hidden: readonly RequestItem[];
  hasFocus: boolean;
  isSettled: boolean;
  stays: boolean;
}): RequestItem | null {
  const { current, hidden, hasFocus, isSettled, stays } = state;
  if (current !== null) {
    const isHidden = hidden.some((item) => requestKey(item) === requestKey(current));
    if (current.outcome === null ? hasFocus || (isHidden && isSettled) : stays) return current;
  }
  return hidden[0] ?? null;
}
