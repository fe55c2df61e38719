import type { MarkInbox } from '@interlude/protocol/commands';
import type { InboxItem } from '@interlude/protocol/inbox';

/** The items with their positions on the page, so that the server marks only the versions that the user has seen. */
export function asShown(items: readonly InboxItem[]): NonNullable<MarkInbox['items']> {
  return items.map(({ id, updatedPosition }) => ({ id, updatedPosition }));
}

/** Shown when items stayed unmarked. */
export const CHANGED_MEANWHILE = 'the items have changed. Review them and try again.';
