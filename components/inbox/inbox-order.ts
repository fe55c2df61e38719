import type { InboxItem } from '@interlude/protocol/inbox';
import { inboxText, sessionText } from '@interlude/protocol/list-search';
import type { SessionSummary } from '@interlude/protocol/read-models';
import { INBOX_KINDS, type InboxKind } from '@interlude/protocol/vocabulary';
import { sessionTitle } from '@/components/sessions/session-words';
import type { RowGroup } from '@/components/ui/held-order';

const GROUPS = [...INBOX_KINDS, 'snoozed'] as const;

/** Of the items that are not done, those that are shown: by kind, of each kind what waits longest first. */
export function inboxOrder(
  open: readonly InboxItem[],
  shown: { kinds: readonly InboxKind[]; snoozed: ReadonlySet<string> },
): RowGroup[] {
  const { kinds, snoozed } = shown;
  const sorted = [...open].sort((a, b) => a.since - b.since || (a.id < b.id ? -1 : 1));
  const ofGroup = new Map<string, string[]>(GROUPS.map((name) => [name, []]));
  for (const { id, kind } of sorted) {
    if (kinds.length === 0 || kinds.includes(kind)) ofGroup.get(snoozed.has(id) ? 'snoozed' : kind)?.push(id);
  }
  return GROUPS.map((name) => ({ name, ids: ofGroup.get(name) ?? [] }));
}

/** Whether a search finds an item, by itself or by its session. */
export function isFound(words: readonly string[], item: InboxItem, session: SessionSummary | undefined): boolean {
  if (words.length === 0) return true;
  const text = `${inboxText(item)}\n${session === undefined ? '' : `${sessionText(session)}\n${sessionTitle(session)}`}`;
  return words.every((word) => text.includes(word));
}
