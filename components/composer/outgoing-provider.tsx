'use client';

import { createContext, type ReactNode, useContext, useEffect, useState, useSyncExternalStore } from 'react';
import { useConnectionState } from '@/components/live/live-provider';
import type { OutgoingMessage } from './draft-store';
import { browserStorage, outgoingName, sessionsWithOutgoing } from './draft-store';
import { OutgoingQueue } from './outgoing-queue';
import { sendMessage } from './send-message';

/** The queues of every session: what was written goes on being sent while another page is looked at. */
class OutgoingQueues {
  readonly #queues = new Map<string, OutgoingQueue>();

  of(sessionId: string): OutgoingQueue {
    const known = this.#queues.get(sessionId);
    if (known !== undefined) return known;
    const queue = new OutgoingQueue({
      sessionId,
      storage: browserStorage(),
      send: (message) => sendMessage(sessionId, message),
      newId: () => crypto.randomUUID(),
      now: () => Date.now(),
    });
    this.#queues.set(sessionId, queue);
    return queue;
  }

  wakeAll(): void {
    for (const sessionId of sessionsWithOutgoing(browserStorage())) this.of(sessionId);
    for (const queue of this.#queues.values()) queue.wake();
  }

  forgotten(key: string): void {
    const name = outgoingName(key);
    if (name !== null) this.#queues.get(name.sessionId)?.forgotten(name.clientId);
  }
}

const QueuesContext = createContext<OutgoingQueues | null>(null);

export function OutgoingProvider({ children }: { children: ReactNode }) {
  const [queues] = useState(() => new OutgoingQueues());
  const { status } = useConnectionState();

  // Now, when the network says it is back, and whenever the live connection is whole again.
  useEffect(() => {
    if (status === 'live' || status === 'connecting') queues.wakeAll();
  }, [queues, status]);
  useEffect(() => {
    const wake = () => queues.wakeAll();
    const onStorage = (event: StorageEvent) => {
      if (event.key !== null && event.newValue === null) queues.forgotten(event.key);
    };
    addEventListener('online', wake);
    addEventListener('storage', onStorage);
    return () => {
      removeEventListener('online', wake);
      removeEventListener('storage', onStorage);
    };
  }, [queues]);
  return <QueuesContext value={queues}>{children}</QueuesContext>;
}

const NONE: readonly OutgoingMessage[] = [];
const never = () => () => {};

/** What was written to this session and its transcript does not show yet. */
export function useOutgoing(sessionId: string): {
  messages: readonly OutgoingMessage[];
  queue: OutgoingQueue | null;
} {
  const queue = useContext(QueuesContext)?.of(sessionId) ?? null;
  const messages = useSyncExternalStore(
    queue?.subscribe ?? never,
    () => queue?.messages ?? NONE,
    () => NONE,
  );
  return { messages, queue };
}
