'use client';

import { usePathname, useRouter, useSearchParams } from 'next/navigation';
import { useEffect, useRef } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { OutgoingWake } from '@/components/composer/outgoing-wake';
import { InboxBadge } from '@/components/inbox/inbox-badge';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';
import { useKeyboardRoom } from '@/components/ui/use-keyboard-room';

/** Runs on every page: keys between pages, queued messages, the tab's badge, and the room above a phone's keyboard. */
export function Background() {
  useKeyboardRoom();
  usePageKeys();
  return (
    <>
      {useMayAct() && <OutgoingWake />}
      <InboxBadge />
    </>
  );
}

/**
 * Esc opens the parent page, or the inbox if the session was opened from there. Two keys open each page of the
 * navigation. The focus follows.
 */
function usePageKeys(): void {
  const path = usePathname();
  const router = useRouter();
  const [, section] = path.split('/');
  const up = section === 'sessions' ? '/' : section === 'agents' ? path.slice(0, path.lastIndexOf('/')) : '';
  const search = useSearchParams().toString();
  // Board and inbox keep their filters in their URLs.
  const board = useRef('/agents');
  const beforeSessions = useRef('/');
  useEffect(() => {
    const href = search === '' ? path : `${path}?${search}`;
    if (path === '/agents') board.current = href;
    if (section !== 'sessions') beforeSessions.current = path === '/inbox' ? href : '/';
  }, [path, search, section]);
  const go = (href: string) => () => {
    if (href === path) focusPage(path);
    // Without a focus, the next page gets it.
    else (document.activeElement as HTMLElement | null)?.blur();
    router.push(href);
  };
  useShortcuts({
    'transcript.leave':
      up === '' ? null : () => router.push(up === '/agents' ? board.current : up === '/' ? beforeSessions.current : up),
    'page.inbox': go('/inbox'),
    'page.sessions': go('/'),
    'page.agents': go('/agents'),
    'page.settings': go('/settings'),
  });
  const last = useRef(path);
  useEffect(() => {
    const [, , leftId = ''] = last.current.split('/');
    // The focus stays in a list that opened a session, so that its keys go on.
    const hasMoved = last.current !== path && !path.startsWith('/sessions/');
    last.current = path;
    const { activeElement: focused } = document;
    const isLost = focused === document.body || focused?.closest('#content, #sessions') != null;
    if (hasMoved && isLost) focusPage(path, decodeURIComponent(leftId));
  }, [path]);
}

/** Unless the focus is in the page, moves it to the row of the session or agent that was left, else to the page. */
function focusPage(path: string, leftId = ''): void {
  const page = document.getElementById(path === '/' ? 'sessions' : 'content');
  const { activeElement: focused } = document;
  if (page === null || (page !== focused && page.contains(focused))) return;
  const id = CSS.escape(leftId);
  const row = page.querySelector<HTMLElement>(
    `[data-session-row="${id}"], [data-agent-row="${id}"], [data-inbox-row="session ${id}"]`,
  );
  (row ?? page).focus({ preventScroll: row === null });
}
