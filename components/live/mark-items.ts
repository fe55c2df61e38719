import type { MarkInbox } from '@interlude/protocol/commands';
import type { InboxItem } from '@interlude/protocol/inbox';

/** What a mark names: items as they stand on the screen, so that nothing is marked that nobody has seen. */
export function asShown(items: readonly InboxItem[]): NonNullable<MarkInbox['items']> {
  return items.map(({ id, updatedPosition }) => ({ id, updatedPosition }));
}

/** Said where items were left unmarked. */
export const SOMETHING_NEW = 'something new came up';
