import type { ActionState } from '@/components/live/actions';
import type { RequestItem } from '@/lib/protocol/read-models';
import { isUnderWay } from './request-answer';

const expired = new WeakMap<RequestItem, RequestItem>();

/**
 * A request as it is when its time is over, though nobody has said so: its agent may be gone, or late to tell. One whose
 * answer is on its way is what becomes of that. The same for the same one, whenever it is looked at.
 *
 * @param isOver whether its `expiresAt` has passed
 */
export function asOfNow(item: RequestItem, isOver: boolean, asked: ActionState | null): RequestItem {
  if (!isOver || item.outcome !== null || isUnderWay(item, asked)) return item;
  const found = expired.get(item) ?? { ...item, outcome: 'expired' };
  expired.set(item, found);
  return found;
}
