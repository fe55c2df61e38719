import type { MarkInbox } from '@interlude/protocol/commands';
import type { InboxItem } from '@interlude/protocol/inbox';

/** The items as shown, so that only seen versions are marked. */
export function asShown(items: readonly InboxItem[]): NonNullable<MarkInbox['items']> {
  return items.map(({ id, updatedPosition }) => ({ id, updatedPosition }));
}

/** Shown when items stayed unmarked. */
export const SOMETHING_NEW = 'new items arrived';
