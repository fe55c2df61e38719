'use client';

import { useMayAct } from '@/components/access/may-act';
import { OutgoingWake } from '@/components/composer/outgoing-wake';
import { InboxBadge } from '@/components/inbox/inbox-badge';
import { useKeyboardRoom } from '@/components/ui/use-keyboard-room';

/** Runs on every page: sends messages that wait, marks the browser’s tab, and leaves room for the keyboard. */
export function Background() {
  useKeyboardRoom();
  return (
    <>
      {useMayAct() && <OutgoingWake />}
      <InboxBadge />
    </>
  );
}
