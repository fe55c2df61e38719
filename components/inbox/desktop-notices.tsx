'use client';

import { withBasePath, withoutBasePath } from '@interlude/protocol/base-path.mjs';
import type { InboxList } from '@interlude/protocol/inbox';
import { comparePositions } from '@interlude/protocol/position';
import { useQuery } from '@tanstack/react-query';
import { useRouter } from 'next/navigation';
import { useEffect, useEffectEvent, useRef, useState } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
import { ALL } from '@/components/live/fleet-store';
import { useConnectionState } from '@/components/live/live-provider';
import { applyUnlessReset, useFleet, useFleetStores } from '@/components/live/use-fleet';
import { onLeave, readStored, storageKey, writeStored } from '@/components/ui/browser-storage';
import { useServerNow } from '@/components/ui/clock';
import { useStoredAnywhere } from '@/components/ui/use-stored-anywhere';
import { itemsOf } from './inbox-items';
import {
  canNotify,
  currentNotices,
  isQuiet,
  LAST_CHECK_KEY,
  type Notice,
  nextCheck,
  noteRefusal,
  noticeSettings,
  noticeText,
  parseCheck,
  SETTINGS_KEY,
} from './notices';

/** Maximum number of notifications at once. More are merged into one. */
const MAX_SHOWN = 3;

/**
 * Shows desktop notifications for new items, once for all tabs, and closes them when an item is done. Only if the user
 * turned them on.
 */
export function DesktopNotices() {
  const { fleet } = useFleetStores();
  const list = useFleet(({ inbox }) => inbox.list(ALL));
  const router = useRouter();
  const leads = useLeads();
  const [stored] = useStoredAnywhere(SETTINGS_KEY);
  const isComplete = useLateItems(leads && noticeSettings(stored).isOn);
  const { status } = useConnectionState();
  // While the page is out of date, it neither shows nor records notifications.
  const isKnown = isComplete && (status === 'live' || status === 'gap');
  const shown = useRef(new Map<string, Notification>());
  const now = useServerNow((at) => at - (at % 1_000));
  const show = async (notice: Notice) => {
    const { key, href } = notice;
    const { title, body } = await noticeText(notice);
    const notification = tryToShow(
      () => new Notification(title, { body, tag: key, icon: withBasePath('/icon-news.svg') }),
    );
    if (notification === null) return;
    notification.onclick = () => {
      window.focus();
      notification.close();
      router.push(href);
    };
    shown.current.set(key, notification);
  };
  const update = useEffectEvent((now: number, isKnown: boolean) => {
    const settings = noticeSettings(readStored(SETTINGS_KEY));
    if (!settings.isOn) {
      for (const notice of shown.current.values()) notice.close();
      shown.current.clear();
      // items that exist when notifications are turned on are not new
      if (readStored(LAST_CHECK_KEY)) writeStored(LAST_CHECK_KEY, '');
      return;
    }
    // The current values, which may be newer than the render.
    const [upTo, items] = [fleet.position, fleet.inbox.list(ALL)?.rows];
    if (!isKnown || upTo === null || items === undefined || !fleet.inbox.isRead(ALL)) return;
    const sessions = [...fleet.sessions.rows()].map(({ row }) => row);
    const current = currentNotices({ items, sessions }, settings, now);
    const keys = new Set(current.map(({ key }) => key));
    for (const [key, notice] of shown.current) {
      if (keys.has(key)) continue;
      notice.close();
      shown.current.delete(key);
    }
    const { check, fresh } = nextCheck(parseCheck(readStored(LAST_CHECK_KEY)), current, now, upTo);
    writeStored(LAST_CHECK_KEY, JSON.stringify(check));
    const time = new Date().toTimeString().slice(0, 5);
    if (Notification.permission !== 'granted' || isQuiet(settings, time)) return;
    const unseen = fresh.filter(({ href }) => !isOnScreen(href));
    if (unseen.length > MAX_SHOWN) void show(summaryOf(unseen));
    else for (const notice of unseen) void show(notice);
  });
  useEffect(
    () =>
      onLeave(() => {
        for (const notice of shown.current.values()) notice.close();
      }),
    [],
  );
  useEffect(() => {
    if (leads && list !== undefined) update(now, isKnown);
  }, [leads, now, list, isKnown]);
  return null;
}

/** @returns null if the browser refuses, as phones do */
function tryToShow(show: () => Notification): Notification | null {
  try {
    return show();
  } catch (error) {
    noteRefusal(error);
    return null;
  }
}

function summaryOf(notices: readonly Notice[]): Notice {
  const [first] = notices as [Notice];
  const body = notices.map(({ title }) => title).join('\n');
  return { ...first, title: `${notices.length} items need your attention`, body, href: '/inbox' };
}

/** True if the user is looking at the notification's page. */
function isOnScreen(href: string): boolean {
  const path = href.split('#')[0];
  return document.visibilityState === 'visible' && document.hasFocus() && withoutBasePath(location.pathname) === path;
}

/** True in the one tab that notifies for all tabs of this user. When it closes, another tab takes over. */
function useLeads(): boolean {
  const [leads, setLeads] = useState(false);
  useEffect(() => {
    if (!canNotify()) return;
    const controller = new AbortController();
    const lead = async () => {
      try {
        await navigator.locks.request(storageKey('notices'), { signal: controller.signal }, async () => {
          setLeads(true);
          await new Promise((resolve) => controller.signal.addEventListener('abort', resolve));
        });
      } catch (error) {
        if (!controller.signal.aborted) noteRefusal(error);
      }
    };
    void lead();
    return () => controller.abort();
  }, []);
  return leads;
}

/** Maximum number of pages, a thousand items each. */
const MAX_PAGES = 10;

/**
 * Loads items that are newer than the last check but not among the loaded ones, which are the oldest of each kind. The
 * stream brings later items.
 *
 * @returns true once they are loaded or loading has failed
 */
function useLateItems(isWanted: boolean): boolean {
  const { fleet } = useFleetStores();
  const resets = useFleet((fleet) => fleet.resets);
  const next = useFleet(({ inbox }) => (inbox.isRead(ALL) ? inbox.list(ALL)?.next : undefined));
  const late = useQuery({
    queryKey: ['late-items', resets],
    queryFn: async ({ signal }) => {
      const since = parseCheck(readStored(LAST_CHECK_KEY))?.upTo;
      let after = since === undefined ? null : (next ?? null);
      for (let page = 0; page < MAX_PAGES && after !== null; page++) {
        const reading = fetchJson<InboxList>(`/inbox?${new URLSearchParams({ after })}`, signal);
        const list: InboxList = await applyUnlessReset(fleet, reading, (list) => {
          const items = list.items.filter((item) => comparePositions(item.updatedPosition, since ?? '') > 0);
          itemsOf(fleet).putFound({ ...list, items });
        });
        after = list.next;
      }
      return resets;
    },
    enabled: isWanted && next != null,
    retry: 1,
  });
  return next === null || !late.isPending;
}
