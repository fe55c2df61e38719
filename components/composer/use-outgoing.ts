'use client';

import { useSyncExternalStore } from 'react';
import type { OutgoingMessage } from './draft-store';
import type { OutgoingQueue } from './outgoing-queue';
import { outgoingQueues } from './outgoing-queues';

const NONE: readonly OutgoingMessage[] = [];
const never = () => () => {};
const isServer = typeof window === 'undefined';

/** What was written to this session and its transcript does not show yet. */
export function useOutgoing(sessionId: string): {
  messages: readonly OutgoingMessage[];
  queue: OutgoingQueue | null;
} {
  const queue = isServer ? null : outgoingQueues.of(sessionId);
  const messages = useSyncExternalStore(
    queue?.subscribe ?? never,
    () => queue?.messages ?? NONE,
    () => NONE,
  );
  return { messages, queue };
}
