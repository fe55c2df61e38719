'use client';

import { useMayAct } from '@/components/access/may-act';
import { OutgoingWake } from '@/components/composer/outgoing-wake';
import { InboxBadge } from '@/components/inbox/inbox-badge';
import { useKeyboardRoom } from '@/components/ui/use-keyboard-room';

/** Runs on every page: sends queued messages, updates the tab's badge, and fits the page above the keyboard. */
export function Background() {
  useKeyboardRoom();
  return (
    <>
      {useMayAct() && <OutgoingWake />}
      <InboxBadge />
    </>
  );
}
