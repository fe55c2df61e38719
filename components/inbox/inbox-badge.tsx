'use client';

import { withBasePath } from '@interlude/protocol/base-path.mjs';
import type { InboxItem } from '@interlude/protocol/inbox';
import { inboxItemPath } from '@interlude/protocol/inbox-rules';
import { INBOX_KINDS } from '@interlude/protocol/vocabulary';
import { usePathname, useRouter } from 'next/navigation';
import { useEffect, useState } from 'react';
import { useCounts } from '@/components/live/use-counts';
import { requestKey } from '@/components/requests/request-answer';
import { goTo } from '@/components/ui/focus-row';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';
import { DesktopNotices } from './desktop-notices';
import { useInbox } from './inbox-items';

const NOTHING: readonly InboxItem[] = [];

/**
 * Marks the tab's title and icon with the number of sessions and agents that need the reader. "r" goes to the request
 * that the page shows, then to the next one.
 */
export function InboxBadge() {
  const { list } = useInbox();
  const rows = list?.rows ?? NOTHING;
  const count = useCounts()?.needsYou ?? 0;
  const text = count.toLocaleString('en');
  useEffect(() => (count === 0 ? undefined : markTab(text)), [count, text]);
  useNextRequest(rows);
  return <DesktopNotices />;
}

function useNextRequest(rows: readonly InboxItem[]): void {
  const router = useRouter();
  const path = usePathname();
  const [lastId, setLastId] = useState<string | null>(null);
  useShortcuts({
    'inbox.next-request': () => {
      const requests = rows
        .filter(({ doneAt, request }) => doneAt === null && request !== null)
        .sort((a, b) => INBOX_KINDS.indexOf(a.kind) - INBOX_KINDS.indexOf(b.kind) || a.since - b.since);
      const focused = document.activeElement?.closest<HTMLElement>(CARD);
      const [shown] = document.querySelectorAll<HTMLElement>(`[data-pins] ${CARD}`);
      if (focused == null && goTo(shown ?? document.querySelector<HTMLElement>(CARD) ?? undefined) !== false) return;
      const isHere = (item: InboxItem) => inboxItemPath(item).split('#')[0] === path;
      const last = requests.findIndex(({ id }) => id === lastId);
      // The user may have left the last request in another way.
      const isLastHere = last >= 0 && isHere(requests[last] as InboxItem);
      const at = focused == null ? -1 : requests.findIndex((item) => keyOf(item) === focused.dataset.action);
      const from = at >= 0 ? at : isLastHere ? last : requests.findIndex(isHere) - 1;
      const next = requests[(Math.max(-1, from) + 1) % Math.max(1, requests.length)];
      if (next === undefined) return false;
      setLastId(next.id);
      router.push(inboxItemPath(next));
    },
  });
}

/** The card of an open request. */
const CARD = '[data-action^="request:"]:not([data-gone], [hidden] *)';

function keyOf({ request }: InboxItem): string | null {
  return request && requestKey({ id: request.id, position: request.openedPosition, digest: request.digest });
}

/** The app's icon with a dot. */
const NEWS_ICON = withBasePath('/icon-news.svg');

/**
 * Adds a count to the page's title and a dot to its icon, until the returned function is called. Survives navigation,
 * which sets a new title.
 *
 * @param count `3`, `1,203`
 */
function markTab(count: string): () => void {
  let title = document.title;
  let marked: string | null = null;
  const icons = new Map<HTMLLinkElement, string>();
  const mark = () => {
    if (document.title !== marked) {
      title = document.title;
      marked = `(${count}) ${title}`;
      document.title = marked;
    }
    for (const icon of document.head.querySelectorAll<HTMLLinkElement>('link[rel="icon"]')) {
      const href = icon.getAttribute('href') ?? '';
      if (href === NEWS_ICON) continue;
      icons.set(icon, href);
      icon.setAttribute('href', NEWS_ICON);
    }
  };
  mark();
  const watch = new MutationObserver(mark);
  watch.observe(document.head, { subtree: true, childList: true, characterData: true });
  return () => {
    watch.disconnect();
    if (document.title === marked) document.title = title;
    for (const [icon, href] of icons) icon.setAttribute('href', href);
  };
}
