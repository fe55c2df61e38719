'use client';

import { useRouter } from 'next/navigation';
import { useEffect, useEffectEvent, useRef, useState } from 'react';
import { useFleetStores } from '@/components/live/use-fleet';
import { useServerNow } from '@/components/ui/now';
import type { InboxItem } from '@/lib/protocol/inbox';
import { isQuiet, type Notice, noticeSettings, SETTINGS_KEY, standingNotices } from './notices';

/** The last look of this browser, whichever of its tabs it was. */
const LOOK_KEY = 'interlude-notices-look';
const LOCK = 'interlude-notices';
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
    const notification = new Notification(title, { body, tag: key, icon: '/icon-news.svg' });
    notification.onclick = () => {
      window.focus();
      notification.close();
      router.push(href);
    };
    shown.current.set(key, notification);
  };
  const look = useEffectEvent((now: number, items: readonly InboxItem[]) => {
    const settings = noticeSettings(kept(SETTINGS_KEY));
    if (!settings.isOn) {
      for (const notice of shown.current.values()) notice.close();
      shown.current.clear();
      // what stands when it is turned on is no news
      keep(LOOK_KEY, '');
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
    keep(LOOK_KEY, JSON.stringify({ at: now, told: recent } satisfies Look));
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
    const { at, told } = JSON.parse(kept(LOOK_KEY) ?? '') as Look;
    return typeof at === 'number' && Array.isArray(told) ? { at, told } : null;
  } catch {
    return null;
  }
}

/** Read anew at each look: another tab may have changed it. Null where a browser keeps nothing. */
function kept(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function keep(key: string, value: string): void {
  try {
    if (localStorage.getItem(key) !== value) localStorage.setItem(key, value);
  } catch {}
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

/** Whether this tab notifies for all of the browser's: one does, and when it goes another one takes over. */
function useLeads(): boolean {
  const [leads, setLeads] = useState(false);
  useEffect(() => {
    if (!('Notification' in window) || !('locks' in navigator)) return;
    const left = new AbortController();
    navigator.locks
      .request(LOCK, { signal: left.signal }, async () => {
        setLeads(true);
        await new Promise((resolve) => left.signal.addEventListener('abort', resolve));
      })
      .catch(() => {});
    return () => left.abort();
  }, []);
  return leads;
}
