import type { RequestItem } from '@interlude/protocol/read-models';
import type { ActionState } from '@/components/live/actions';
import { isUnderWay } from './request-answer';

const expired = new WeakMap<RequestItem, RequestItem>();

/**
 * A request as it is once its time is over, even if nobody has said so: its agent may be gone, or slow to tell. While an
 * answer is on its way, that decides. For the same request it is always the same object.
 *
 * @param isOver whether its `expiresAt` has passed
 */
export function asOfNow(item: RequestItem, isOver: boolean, asked: ActionState | null): RequestItem {
  if (!isOver || item.outcome !== null || isUnderWay(item, asked)) return item;
  const found = expired.get(item) ?? { ...item, outcome: 'expired' };
  expired.set(item, found);
  return found;
}
