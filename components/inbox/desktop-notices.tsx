'use client';

import { withBasePath, withoutBasePath } from '@interlude/protocol/base-path.mjs';
import { useRouter } from 'next/navigation';
import { useEffect, useEffectEvent, useRef } from 'react';
import { ALL } from '@/components/live/fleet-store';
import { useConnectionState } from '@/components/live/live-provider';
import { useFleet, useFleetStores } from '@/components/live/use-fleet';
import { onLeave, readStored, writeStored } from '@/components/ui/browser-storage';
import { useServerNow } from '@/components/ui/clock';
import { useStoredAnywhere } from '@/components/ui/use-stored-anywhere';
import { LOOK_KEY, lookOf, nextLook } from './notice-look';
import { noteRefusal } from './notice-refusal';
import { noticeText } from './notice-text';
import { isQuiet, type Notice, noticeSettings, SETTINGS_KEY, standingNotices } from './notices';
import { useLateItems } from './use-late-items';
import { useLeads } from './use-leads';

/** More at once are told in one. */
const MOST_AT_ONCE = 3;

/**
 * Notifies the desktop of what comes up while nobody looks at it: once, whatever tabs there are, and takes it back when
 * it needs nobody any more. Only where somebody has asked for it.
 */
export function DesktopNotices() {
  const { fleet } = useFleetStores();
  const list = useFleet(({ inbox }) => inbox.list(ALL));
  const router = useRouter();
  const leads = useLeads();
  const [stored] = useStoredAnywhere(SETTINGS_KEY);
  const isWhole = useLateItems(leads && noticeSettings(stored).isOn);
  const { status } = useConnectionState();
  // Where it is not known how things stand, nothing is told, and nothing counts as told.
  const isKnown = isWhole && (status === 'live' || status === 'gap');
  const shown = useRef(new Map<string, Notification>());
  const now = useServerNow((at) => at - (at % 1_000));
  const tell = async (notice: Notice) => {
    const { key, href } = notice;
    const { title, body } = await noticeText(notice);
    const notification = shownBy(
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
  const look = useEffectEvent((now: number, isKnown: boolean) => {
    const settings = noticeSettings(readStored(SETTINGS_KEY));
    if (!settings.isOn) {
      for (const notice of shown.current.values()) notice.close();
      shown.current.clear();
      // what stands when it is turned on is no news
      if (readStored(LOOK_KEY)) writeStored(LOOK_KEY, '');
      return;
    }
    // Both as they are by now, whatever was rendered.
    const [upTo, items] = [fleet.position, fleet.inbox.list(ALL)?.rows];
    if (!isKnown || upTo === null || items === undefined || !fleet.inbox.isRead(ALL)) return;
    const sessions = [...fleet.sessions.rows()].map(({ row }) => row);
    const standing = standingNotices({ items, sessions }, settings, now);
    const keys = new Set(standing.map(({ key }) => key));
    for (const [key, notice] of shown.current) {
      if (keys.has(key)) continue;
      notice.close();
      shown.current.delete(key);
    }
    const { look, fresh } = nextLook(lookOf(readStored(LOOK_KEY)), standing, now, upTo);
    writeStored(LOOK_KEY, JSON.stringify(look));
    const time = new Date().toTimeString().slice(0, 5);
    if (Notification.permission !== 'granted' || isQuiet(settings, time)) return;
    const unseen = fresh.filter(({ href }) => !isBeforeTheirEyes(href));
    if (unseen.length > MOST_AT_ONCE) void tell(summaryOf(unseen));
    else for (const notice of unseen) void tell(notice);
  });
  useEffect(
    () =>
      onLeave(() => {
        for (const notice of shown.current.values()) notice.close();
      }),
    [],
  );
  useEffect(() => {
    if (leads && list !== undefined) look(now, isKnown);
  }, [leads, now, list, isKnown]);
  return null;
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
  return document.visibilityState === 'visible' && document.hasFocus() && withoutBasePath(location.pathname) === path;
}
