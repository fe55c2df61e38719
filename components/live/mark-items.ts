import type { MarkInbox } from '@interlude/protocol/commands';
import type { InboxItem } from '@interlude/protocol/inbox';
import { plural } from '@/components/ui/duration';

/** The items with their positions on the page, so that the server marks only the versions that the user has seen. */
export function asShown(items: readonly InboxItem[]): NonNullable<MarkInbox['items']> {
  return items.map(({ id, updatedPosition }) => ({ id, updatedPosition }));
}

/** @param count items that stayed unmarked */
export function changedText(count: number): string {
  return `${plural(count, 'item')} changed meanwhile. Review and try again.`;
}
