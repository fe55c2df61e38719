'use client';

import { useEffect } from 'react';
import { useConnectionState } from '@/components/live/live-provider';
import { whenIdle } from '@/components/ui/when-idle';

const load = async () => (await import('./outgoing-queue')).outgoingQueues;

/** What was written goes on being sent while another page is looked at, and on the next visit. */
export function OutgoingWake(): null {
  const { status } = useConnectionState();

  // Now, when the network says it is back, and whenever the live connection is whole again.
  useEffect(() => {
    if (status !== 'live' && status !== 'connecting') return;
    const turn = whenIdle(wake);
    return () => turn.cancel();
  }, [status]);
  useEffect(() => {
    const onStorage = ({ key, newValue }: StorageEvent) => {
      if (key !== null && newValue === null) void load().then((queues) => queues.forgotten(key), nothing);
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

/** Where the code can't be loaded, the server is away, and it is tried again when that is back. */
function nothing(): void {}
