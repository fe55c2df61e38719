'use client';

import { useRouter } from 'next/navigation';
import { useEffect, useEffectEvent, useRef } from 'react';
import { useFleetStores } from '@/components/live/use-fleet';
import { useServerNow } from '@/components/ui/now';
import { readStored, writeStored } from '@/components/ui/use-stored';
import type { InboxItem } from '@/lib/protocol/inbox';
import { noteRefusal } from './notice-refusal';
import { isQuiet, type Notice, noticeSettings, SETTINGS_KEY, standingNotices } from './notices';
import { useLeads } from './use-leads';

/** The last look of this browser, whichever of its tabs it was. */
const LOOK_KEY = 'interlude-notices-look';
/** What comes up may be told so much later than it did: it has to settle first. */
const SETTLING_MS = 15_000;
/** More at once are told in one. */
const MOST_AT_ONCE = 3;

/**
 * Notifies the desktop of what comes up while nobody looks at it: once, whatever tabs there are, and takes it back when
 * it needs nobody any more. Only where somebody has asked for it.
 */
export function DesktopNotices({ items }: { items: readonly InboxItem[] }) {
  const { fleet } = useFleetStores();
  const router = useRouter();
  const leads = useLeads();
  const shown = useRef(new Map<string, Notification>());
  const now = useServerNow((at) => at - (at % 1_000));
  const tell = ({ key, title, body, href }: Notice) => {
    const notification = shownBy(() => new Notification(title, { body, tag: key, icon: '/icon-news.svg' }));
    if (notification === null) return;
    notification.onclick = () => {
      window.focus();
      notification.close();
      router.push(href);
    };
    shown.current.set(key, notification);
  };
  const look = useEffectEvent((now: number, items: readonly InboxItem[]) => {
    const settings = noticeSettings(readStored(SETTINGS_KEY));
    if (!settings.isOn) {
      for (const notice of shown.current.values()) notice.close();
      shown.current.clear();
      // what stands when it is turned on is no news
      writeStored(LOOK_KEY, '');
      return;
    }
    const standing = standingNotices(
      { items, sessions: [...fleet.sessions.rows()].map(({ row }) => row) },
      settings,
      now,
    );
    const keys = new Set(standing.map(({ key }) => key));
    for (const [key, notice] of shown.current) {
      if (keys.has(key)) continue;
      notice.close();
      shown.current.delete(key);
    }
    const before = lastLook();
    const told = new Set(before?.told ?? keys);
    const fresh = standing.filter(({ key, at }) => at > (before?.at ?? now) - SETTLING_MS && !told.has(key));
    const recent = standing.filter(({ at }) => at > now - SETTLING_MS).map(({ key }) => key);
    writeStored(LOOK_KEY, JSON.stringify({ at: now, told: recent } satisfies Look));
    const time = new Date().toTimeString().slice(0, 5);
    if (Notification.permission !== 'granted' || isQuiet(settings, time)) return;
    const unseen = fresh.filter(({ href }) => !isBeforeTheirEyes(href));
    if (unseen.length > MOST_AT_ONCE) tell(summaryOf(unseen));
    else for (const notice of unseen) tell(notice);
  });
  useEffect(() => {
    if (leads) look(now, items);
  }, [leads, now, items]);
  return null;
}

interface Look {
  /** When, by the server's clock. */
  at: number;
  /** What had come up shortly before it, and needs no other notification. */
  told: string[];
}

/** Null at the first look: what stands then is no news. */
function lastLook(): Look | null {
  try {
    const { at, told } = JSON.parse(readStored(LOOK_KEY) ?? '') as Look;
    return typeof at === 'number' && Array.isArray(told) ? { at, told } : null;
  } catch {
    return null;
  }
}

/** Null where the browser knows notifications, and yet lets no page show any, as on phones. */
function shownBy(show: () => Notification): Notification | null {
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
  return { ...first, title: `${notices.length} things need you`, body, href: '/inbox' };
}

/** The reader looks at the very page that it is about. */
function isBeforeTheirEyes(href: string): boolean {
  const path = href.split('#')[0];
  return document.visibilityState === 'visible' && document.hasFocus() && location.pathname === path;
}
