'use client';

import { useEffect } from 'react';
import { useConnectionState } from '@/components/live/live-provider';
import { whenIdle } from '@/components/ui/when-idle';

/** Keeps sending messages while the reader is on another page, and on the next visit. */
export function OutgoingWake(): null {
  const { status } = useConnectionState();

  // On load, and whenever the live connection is back: the code can't be loaded while the server is unreachable.
  useEffect(() => {
    if (status !== 'live' && status !== 'connecting') return;
    const turn = whenIdle(
      () =>
        void import('./outgoing-queue').then(
          (code) => code.outgoingQueues.wakeAll(),
          () => {},
        ),
    );
    return () => turn.cancel();
  }, [status]);
  return null;
}
