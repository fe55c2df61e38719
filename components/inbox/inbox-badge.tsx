'use client';

import type { InboxItem } from '@interlude/protocol/inbox';
import { inboxItemPath, isUnread } from '@interlude/protocol/inbox-rules';
import { INBOX_KINDS } from '@interlude/protocol/vocabulary';
import { usePathname, useRouter } from 'next/navigation';
import { useEffect, useState } from 'react';
import { useServerNow } from '@/components/ui/now';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';
import { DesktopNotices } from './desktop-notices';
import { markTab } from './mark-tab';
import { useInbox } from './use-inbox';

const NOTHING: readonly InboxItem[] = [];

/**
 * How much in the inbox nobody has seen, beside the way there, in the title of the page and on its icon. Where there is
 * a request, "r" leads to it from any page, and from one to the next.
 */
export function InboxBadge() {
  const { list } = useInbox();
  const rows = list?.rows ?? NOTHING;
  const count = useServerNow((now) => rows.filter((item) => isUnread(item, now)).length);
  const text = `${count}${count > 0 && list?.next != null ? '+' : ''}`;
  useEffect(() => (count === 0 ? undefined : markTab(text)), [count, text]);
  useNextRequest(rows);
  const notices = <DesktopNotices />;
  if (count === 0) return notices;
  return (
    <>
      {notices}
      <span
        aria-hidden="true"
        // beside the icon, in room that is kept for it: whenever it comes, nothing moves
        className="tabular absolute right-[17px] rounded-full bg-waiting px-1 font-medium text-[10px] text-ground leading-[14px]"
      >
        {text}
      </span>
      <span className="sr-only">new: {text}</span>
    </>
  );
}

function useNextRequest(rows: readonly InboxItem[]): void {
  const router = useRouter();
  const path = usePathname();
  const [lastId, setLastId] = useState<string | null>(null);
  useShortcuts({
    'inbox.next-request': () => {
      const asking = rows
        .filter(({ doneAt, request }) => doneAt === null && request !== null)
        .sort((a, b) => INBOX_KINDS.indexOf(a.kind) - INBOX_KINDS.indexOf(b.kind) || a.since - b.since);
      const isHere = (item: InboxItem) => inboxItemPath(item).split('#')[0] === path;
      const last = asking.findIndex(({ id }) => id === lastId);
      // What was gone to last may have been left since by another way.
      const from = last >= 0 && isHere(asking[last] as InboxItem) ? last : -1;
      const next = asking[(from + 1) % Math.max(1, asking.length)];
      if (next === undefined) return false;
      setLastId(next.id);
      router.push(inboxItemPath(next));
    },
  });
}
