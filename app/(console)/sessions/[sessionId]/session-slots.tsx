'use client';

import { attachmentPath } from '@interlude/protocol/attachments';
import type { MessageItem } from '@interlude/protocol/read-models';
import { API_ADDRESS } from '@interlude/protocol/version';
import { type ReactNode, type RefObject, useMemo } from 'react';
import { useMayAct } from '@/components/access/may-act';
import type { ComposerHandle } from '@/components/composer/composer';
import { DeliveryLine } from '@/components/composer/delivery-line';
import { useOutgoing } from '@/components/composer/outgoing-queue';
import { withOutgoing } from '@/components/composer/with-outgoing';
import { useRefusal } from '@/components/live/refusals';
import { WaiveReply } from '@/components/obligations/settle-reply';
import { useOwedMessages } from '@/components/obligations/use-obligations';
import { type TranscriptSlots, TranscriptSlotsProvider } from '@/components/transcript/transcript-slots';
import { endOf } from './end-of';
import { quoteOf } from './quote-of';
import { useSessionRows, useSessionScope, useTranscriptState } from './session-scope';
import { useNamedTasks } from './use-named-tasks';
import { useTaskSlots } from './use-task-slots';

/** What a session's page adds to its transcript: tasks, requests, how its messages go, and the way to answer them. */
export function SessionSlots({ children }: { children: ReactNode }) {
  const { sessionId, transcript, composer } = useSessionScope();
  const { session, agent } = useSessionRows();
  const slots = useTaskSlots(
    useNamedTasks().tasks,
    useTranscriptState((state) => state?.turns),
  );
  const { queue } = useOutgoing(sessionId);
  const owed = useOwedMessages(session);
  const away = agent?.connection === 'away';
  const mayAct = useMayAct();
  const canWrite = useRefusal('message') === null && mayAct && endOf(session, agent) === null;
  const value = useMemo(
    (): TranscriptSlots => ({
      ...slots,
      renderDelivery: (item) => (
        <Delivery sessionId={sessionId} composer={composer} item={item} away={away} canWrite={canWrite} />
      ),
      renderOwed: (item) =>
        owed.has(item.id) && (
          <p className="mt-1 flex flex-wrap items-baseline gap-x-3 text-2xs text-ink-3">
            Owed a reply <WaiveReply sessionId={sessionId} messageId={item.id} />
          </p>
        ),
      // Looked up when it is shown: were the slots new with every word that streams, every turn would be.
      quoteOf: (id) => quoteOf(transcript.value ? withOutgoing(transcript.value, queue?.messages ?? []).turns : [], id),
      hrefOf: ({ hash, name }) => `${API_ADDRESS}${attachmentPath(hash, sessionId, name)}`,
      replyTo: canWrite ? (id) => composer.current?.replyTo(id) : null,
    }),
    [slots, sessionId, away, canWrite, owed, transcript, queue, composer],
  );
  return <TranscriptSlotsProvider value={value}>{children}</TranscriptSlotsProvider>;
}

function Delivery(props: {
  sessionId: string;
  composer: RefObject<ComposerHandle | null>;
  item: MessageItem;
  away: boolean;
  canWrite: boolean;
}) {
  const { sessionId, composer, item, away, canWrite } = props;
  const { messages, queue } = useOutgoing(sessionId);
  const own = messages.find(({ clientId }) => clientId === item.id) ?? null;
  const refused = own?.state === 'refused';
  const failed = own === null && item.delivery === 'failed';
  const again = () => {
    if (own === null) queue?.post(item.text, item.replyTo[0] ?? null, item.attachments);
    else queue?.tryAgain(own.clientId);
  };
  const edit = () => {
    if (queue === null || own === null || composer.current === null) return;
    composer.current.takeBack(own);
    queue.discard(own.clientId);
  };
  return (
    <DeliveryLine
      item={item}
      outgoing={own}
      away={away}
      sendAgain={canWrite && queue !== null && (refused || failed) ? again : null}
      edit={canWrite && refused ? edit : null}
      discard={queue !== null && own !== null && refused ? () => queue.discard(own.clientId) : null}
    />
  );
}
