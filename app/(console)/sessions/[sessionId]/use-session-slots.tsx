'use client';

import { type RefObject, useMemo, useRef } from 'react';
import type { ComposerHandle } from '@/components/composer/composer';
import { DeliveryLine } from '@/components/composer/delivery-line';
import { useOutgoing } from '@/components/composer/outgoing-provider';
import { Waive } from '@/components/obligations/waive';
import { quote } from '@/components/transcript/reply-link';
import type { TranscriptSlots } from '@/components/transcript/transcript-slots';
import type { MessageItem, Task, Turn } from '@/lib/protocol/read-models';
import { useTaskSlots } from './use-task-slots';

/** What a session's page adds to its transcript: tasks, requests, how its messages go, and the way to answer them. */
export function useSessionSlots(options: {
  sessionId: string;
  tasks: readonly Task[];
  turns: readonly Turn[] | undefined;
  away: boolean;
  canWrite: boolean;
  /** Messages whose reply is owed, while the agent is at none. */
  owed: ReadonlySet<string>;
  composer: RefObject<ComposerHandle | null>;
}): TranscriptSlots {
  const { sessionId, tasks, turns, away, canWrite, owed, composer } = options;
  const slots = useTaskSlots(tasks, turns);
  // Quotes are looked up when they are shown. Were the slots new with every word that streams, every turn would be.
  const newest = useRef(turns);
  newest.current = turns;
  return useMemo(
    (): TranscriptSlots => ({
      ...slots,
      renderDelivery: (item) => <Delivery sessionId={sessionId} item={item} away={away} canWrite={canWrite} />,
      renderOwed: (item) =>
        owed.has(item.id) && (
          <p className="mt-1 flex flex-wrap items-baseline gap-x-3 text-2xs text-ink-3">
            Owed a reply <Waive sessionId={sessionId} messageId={item.id} />
          </p>
        ),
      quoteOf: (id) => quoteOf(newest.current ?? [], id),
      replyTo: canWrite ? (id) => composer.current?.replyTo(id) : null,
    }),
    [slots, sessionId, away, canWrite, owed, composer],
  );
}

function Delivery(props: { sessionId: string; item: MessageItem; away: boolean; canWrite: boolean }) {
  const { sessionId, item, away, canWrite } = props;
  const { messages, queue } = useOutgoing(sessionId);
  const own = messages.find(({ clientId }) => clientId === item.id) ?? null;
  const refused = own?.state === 'refused';
  const failed = own === null && item.delivery === 'failed';
  const again = () => {
    if (own === null) queue?.post(item.text, item.replyTo[0] ?? null);
    else queue?.tryAgain(own.clientId);
  };
  return (
    <DeliveryLine
      item={item}
      outgoing={own}
      away={away}
      sendAgain={canWrite && queue !== null && (refused || failed) ? again : null}
      discard={queue !== null && own !== null && refused ? () => queue.discard(own.clientId) : null}
    />
  );
}

/** A turn that did not change keeps its identity, and each of its messages may be quoted by thousands. */
const messages = new WeakMap<Turn, ReadonlyMap<string, MessageItem>>();

function messagesOf(turn: Turn): ReadonlyMap<string, MessageItem> {
  const known = messages.get(turn);
  if (known !== undefined) return known;
  const found = new Map<string, MessageItem>();
  for (const item of turn.items) if (item.kind === 'message' && !found.has(item.id)) found.set(item.id, item);
  messages.set(turn, found);
  return found;
}

export function quoteOf(turns: readonly Turn[], messageId: string): string | null {
  for (let at = turns.length - 1; at >= 0; at--) {
    const found = messagesOf(turns[at] as Turn).get(messageId);
    if (found !== undefined) return quote(found);
  }
  return null;
}
