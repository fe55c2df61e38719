'use client';

import { useMayAct } from '@/components/access/may-act';
import { OutgoingWake } from '@/components/composer/outgoing-wake';
import { InboxBadge } from '@/components/inbox/inbox-badge';

/** Runs on every page: sends messages that wait, and marks the browser’s tab. */
export function Background() {
  return (
    <>
      {useMayAct() && <OutgoingWake />}
      <InboxBadge />
    </>
  );
}
