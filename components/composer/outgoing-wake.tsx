'use client';

import { useEffect } from 'react';
import { useConnectionState } from '@/components/live/live-provider';
import { whenIdle } from '@/components/ui/when-idle';

const load = async () => (await import('./outgoing-queue')).outgoingQueues;

/** Keeps sending messages while the reader is on another page, and on the next visit. */
export function OutgoingWake(): null {
  const { status } = useConnectionState();

  // On load, and whenever the live connection is back.
  useEffect(() => {
    if (status !== 'live' && status !== 'connecting') return;
    const turn = whenIdle(wake);
    return () => turn.cancel();
  }, [status]);
  useEffect(() => {
    const onStorage = ({ key, newValue }: StorageEvent) => {
      if (key !== null && newValue === null) void load().then((queues) => queues.removedElsewhere(key), nothing);
    };
    addEventListener('online', wake);
    addEventListener('storage', onStorage);
    return () => {
      removeEventListener('online', wake);
      removeEventListener('storage', onStorage);
    };
  }, []);
  return null;
}

function wake(): void {
  void load().then((queues) => queues.wakeAll(), nothing);
}

/** The code can't be loaded while the server is unreachable. The next wake retries. */
function nothing(): void {}
