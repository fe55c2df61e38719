'use client';

import { attachmentPath } from '@interlude/protocol/attachments';
import { comparePositions } from '@interlude/protocol/position';
import type { Item, MessageItem, NoticeItem, Task, Turn } from '@interlude/protocol/read-models';
import { API_ADDRESS } from '@interlude/protocol/version';
import { type ReactNode, type RefObject, useEffect, useMemo, useSyncExternalStore } from 'react';
import { renderRequest } from '@/app/(console)/render-request';
import { useMayAct } from '@/components/access/may-act';
import type { ComposerHandle } from '@/components/composer/composer';
import { DeliveryLine } from '@/components/composer/delivery-line';
import type { OutgoingMessage } from '@/components/composer/draft-store';
import { useOutgoing } from '@/components/composer/outgoing-queue';
import { isShown, withOutgoing } from '@/components/composer/with-outgoing';
import { type ActionStore, useActions } from '@/components/live/actions';
import { useRefusal } from '@/components/live/refusals';
import { useSelected } from '@/components/live/use-folded';
import { WaiveReply } from '@/components/obligations/settle-reply';
import { useUnansweredMessages } from '@/components/obligations/use-obligations';
import { TaskCard } from '@/components/tasks/task-card';
import { TaskEndLine } from '@/components/tasks/task-summary';
import { isBoilerplate, taskAnchor } from '@/components/tasks/task-words';
import { DetachedRequests } from '@/components/transcript/call-state';
import { ItemList } from '@/components/transcript/item-list';
import type { ServerMarkup } from '@/components/transcript/server-markup';
import { Transcript } from '@/components/transcript/transcript';
import { type TranscriptSlots, TranscriptSlotsProvider } from '@/components/transcript/transcript-slots';
import { TranscriptWait } from '@/components/transcript/transcript-wait';
import { endOf, quoteOf } from './session-foot';
import {
  pageUrl,
  useNamedTasks,
  useSessionRows,
  useSessionScope,
  useTaskNames,
  useTranscriptState,
} from './session-scope';
import { isInSight } from './session-stores';

export interface SessionTranscriptProps {
  nonce: string | undefined;
  sentCount: number;
  painted: ServerMarkup | null;
  showToast: (text: string) => void;
}

/** The transcript followed by this browser's outgoing messages, or the reason why it isn't loaded. */
export function SessionTranscript({ nonce, sentCount, painted, showToast }: SessionTranscriptProps) {
  const { sessionId, transcript, query, shown: handle } = useSessionScope();
  const state = useTranscriptState((state) => state);
  const older = useSelected(transcript, (store) => store.older);
  const { messages, queue } = useOutgoing(sessionId);
  const shown = useMemo(() => state && withOutgoing(state, messages), [state, messages]);

  const turns = state?.turns;
  useOutcomes({ actions: useActions(), turns, outgoing: messages, showToast });
  // Messages in the transcript have arrived.
  useEffect(() => {
    if (turns !== undefined && messages.length > 0) queue?.discardShown((message) => isShown(turns, message));
  }, [queue, turns, messages]);

  const readAgain = () => void query.refetch();
  if (shown === undefined) {
    const onCome = () => handle.current?.focus();
    return (
      <TranscriptWait error={query.failureReason} isLoading={query.isFetching} retry={readAgain} onCome={onCome} />
    );
  }
  return (
    <>
      {query.isError && (
        <p className="flex gap-3 px-5 py-2 text-failed text-xs">
          {query.error.message}
          <button type="button" onClick={readAgain} className="underline">
            Try again
          </button>
        </p>
      )}
      <SessionSlots>
        <DetachedRequests turns={shown.turns}>
          <Transcript
            state={shown}
            nonce={nonce}
            sentCount={sentCount}
            loadOlder={transcript.loadOlder}
            loadingOlder={older.isLoading}
            olderError={older.error}
            seek={transcript.seek}
            handle={handle}
            painted={painted}
          />
        </DetachedRequests>
      </SessionSlots>
    </>
  );
}

/** Renders tasks, which have their own read model, and requests in the transcript. */
export function useTaskSlots(tasks: readonly Task[], turns: readonly Turn[] | undefined): TranscriptSlots {
  const oldest = turns?.[0]?.position;
  const names = useTaskNames(tasks);
  return useMemo((): TranscriptSlots => {
    const hasCard = (task: Task) =>
      oldest !== undefined && task.startedInTurnId !== null && comparePositions(task.position, oldest) >= 0;
    return {
      ...names,
      tellingSummary: (task) => (task.summary === null || isBoilerplate(task) ? null : task.summary),
      anchorOf: taskAnchor,
      hasCard,
      renderTask: (item, call) => {
        const task = names.findTask(item);
        if (task === null) return call;
        if (item.phase === 'started') return <TaskCard task={task} call={call} renderItems={renderSteps} />;
        return <TaskEndLine task={task} item={item} standsAlone={!hasCard(task)} />;
      },
      renderRequest: (item) => renderRequest(item),
      renderDelivery: () => null,
      renderObligation: () => null,
      quoteOf: () => null,
      hrefOf: () => null,
      linkTo: (anchor) => pageUrl(null, anchor),
      replyTo: null,
    };
  }, [names, oldest]);
}

/** Steps of a subagent. Its background tasks have their own cards in the transcript. */
function renderSteps(items: readonly Item[], endedAt: number | null): ReactNode {
  return (
    <ItemList
      items={items}
      endedAt={endedAt}
      renderTask={() => null}
      renderRequest={(item) => renderRequest(item)}
      startedBy={() => null}
    />
  );
}

/** Adds tasks, requests, delivery and replies to the transcript. */
function SessionSlots({ children }: { children: ReactNode }) {
  const { sessionId, publicUrl, transcript, composer } = useSessionScope();
  const { session, agent } = useSessionRows();
  const slots = useTaskSlots(
    useNamedTasks().tasks,
    useTranscriptState((state) => state?.turns),
  );
  const { queue } = useOutgoing(sessionId);
  const unanswered = useUnansweredMessages(session);
  const away = agent?.connection === 'away';
  const mayAct = useMayAct();
  const canWrite = useRefusal('message') === null && mayAct && endOf(session, agent) === null;
  const value = useMemo(
    (): TranscriptSlots => ({
      ...slots,
      renderDelivery: (item) => (
        <Delivery sessionId={sessionId} composer={composer} item={item} away={away} canWrite={canWrite} />
      ),
      renderObligation: (item) =>
        unanswered.has(item.id) && (
          <p className="mt-1 flex flex-wrap items-baseline gap-x-3 text-2xs text-ink-3">
            Pending reply <WaiveReply sessionId={sessionId} messageId={item.id} />
          </p>
        ),
      // Looked up lazily: new slots on every delta would render every turn again.
      quoteOf: (id) => quoteOf(transcript.value ? withOutgoing(transcript.value, queue?.messages ?? []).turns : [], id),
      hrefOf: ({ hash, name }) => `${API_ADDRESS}${attachmentPath(hash, sessionId, name)}`,
      linkTo: (anchor) => pageUrl(publicUrl, anchor),
      replyTo: canWrite ? (id) => composer.current?.replyTo(id) : null,
    }),
    [slots, sessionId, publicUrl, away, canWrite, unanswered, transcript, queue, composer],
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
    composer.current.restoreMessage(own);
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

const never = () => () => {};

/** Settles this page's actions from the transcript, and reports failures that the reader can't see. */
function useOutcomes(options: {
  actions: ActionStore | null;
  turns: readonly Turn[] | undefined;
  outgoing: readonly OutgoingMessage[];
  showToast: (text: string) => void;
}): void {
  const { actions, turns, outgoing, showToast } = options;
  const version = useSyncExternalStore(
    actions?.subscribe ?? never,
    () => actions?.version ?? 0,
    () => 0,
  );

  // The transcript has the outcome of a command, possibly before the response arrives.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version changes with the store
  useEffect(() => {
    for (const { key, commandId } of actions?.accepted() ?? []) {
      const notice = turns === undefined ? null : commandNotice(turns, commandId);
      if (notice?.command?.state === 'failed') actions?.fail(key, notice.text);
      else if (notice?.command?.state === 'done' && /^(stop|wake):/.test(key)) actions?.clear(key);
    }
  }, [actions, turns, version]);

  const refused = outgoing.findLast(({ state }) => state === 'refused');
  useEffect(() => {
    if (refused === undefined || isInSight(`#${CSS.escape(`message-${refused.clientId}`)}`)) return;
    showToast(`Message not sent: ${refused.reason ?? 'the server refused it'}`);
  }, [refused, showToast]);
}

/** Agents answer commands within minutes, so the notice of a failure is near the end. */
const TURNS_SEARCHED = 50;

function commandNotice(turns: readonly Turn[], commandId: string): NoticeItem | null {
  for (const turn of turns.slice(-TURNS_SEARCHED).reverse()) {
    const found = turn.items.find((item) => item.kind === 'notice' && item.command?.id === commandId);
    if (found?.kind === 'notice') return found;
  }
  return null;
}
