'use client';

import { useQueryClient } from '@tanstack/react-query';
import { ChevronLeft, ChevronRight, X } from 'lucide';
import {
  type KeyboardEvent,
  type TouchEvent,
  useEffect,
  useEffectEvent,
  useLayoutEffect,
  useRef,
  useState,
} from 'react';
import { useFleet, useFleetStores } from '@/components/live/use-fleet';
import { answerByKey } from '@/components/requests/request-answer';
import { type CardKeys, pressCard } from '@/components/requests/request-board';
import { plural } from '@/components/ui/duration';
import { Icon } from '@/components/ui/icon';
import { Link } from '@/components/ui/link';
import { Name, Words } from '@/components/ui/name';
import { type CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { isPress, isTyping, useOpenDialog } from '@/components/ui/shortcuts/use-shortcuts';
import { ownerTitle } from './inbox-labels';
import { hasRequest, type RequestedItem, requestQuery, useAnswer } from './item-request';

/** A horizontal swipe is at least this long, in pixels, and twice as long as it is high. */
const SWIPE_PX = 60;

/**
 * Walks through the requests that need the reader, one card at a time: an answer goes on to the next one, and so do a
 * swipe and the arrows.
 *
 * @param items open requests in order; new ones join at the end
 */
export function ReviewDeck(props: {
  items: readonly RequestedItem[];
  /** True while open requests are missing from `items`. */
  hasMore: boolean;
  /** The failure to load them, if any. */
  error: Error | null;
  onRetry: () => void;
  requestCode: CodeOnDemand<{ item: RequestedItem }>;
  onClose: () => void;
}) {
  const { items, hasMore, error, onRetry, requestCode, onClose } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  const { fleet } = useFleetStores();
  const [ids, setIds] = useState(() => items.map(({ id }) => id));
  const [answered, setAnswered] = useState<ReadonlySet<string>>(new Set());
  const [index, setIndex] = useState(0);
  /** The request whose card has just ignored a press. */
  const [ignoredBy, setIgnoredBy] = useState<string | null>(null);
  const touch = useRef<{ x: number; y: number } | null>(null);
  useOpenDialog();
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    element?.focus();
    return () => element?.close();
  }, []);
  const added = items.filter(({ id }) => !ids.includes(id)).map(({ id }) => id);
  if (added.length > 0) setIds([...ids, ...added]);
  const current = useFleet(({ inbox }) => inbox.get(ids[index] ?? ''));
  const isListed = items.some(({ id }) => id === current?.id);
  // Another person may have claimed the request on screen.
  const answerable = current !== undefined && hasRequest(current) && !isListed ? [...items, current] : items;
  const isOpen = (id: string) => !answered.has(id) && fleet.inbox.get(id)?.doneAt === null;
  const left = ids.filter(isOpen);
  const client = useQueryClient();
  const nextId = ids.find((id, at) => at > index && isOpen(id));
  useEffect(() => {
    const next = items.find(({ id }) => id === nextId);
    // Its card then appears in one piece.
    if (next !== undefined) void client.prefetchQuery(requestQuery(next));
  }, [client, items, nextId]);
  const go = (to: number) => {
    setIndex(Math.max(0, Math.min(ids.length, to)));
    dialog.current?.focus();
  };
  const onAnswer = (id: string, isSent: boolean) => {
    const others = [...answered].filter((one) => one !== id);
    setAnswered(new Set(isSent ? [...others, id] : others));
    if (!isSent || id !== current?.id) return;
    const next = ids.findIndex((one, at) => at > index && one !== id && isOpen(one));
    go(next < 0 ? ids.length : next);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    event.stopPropagation();
    if (isTyping(event.nativeEvent)) return;
    answerByKey(event, dialog.current?.querySelector<HTMLFormElement>('form[data-question]'));
    if (event.defaultPrevented) return;
    const press = (key: keyof CardKeys) => {
      const isIgnored = pressCard(current?.request?.digest ?? null, key) === false;
      setIgnoredBy(isIgnored ? (current?.id ?? null) : null);
    };
    if (isPress('request.allow', event)) press('allow');
    else if (isPress('request.deny', event)) press('deny');
    else if (event.key === 'ArrowRight' || isPress('inbox.next', event)) go(index + 1);
    else if (event.key === 'ArrowLeft' || isPress('inbox.previous', event)) go(index - 1);
    else return;
    event.preventDefault();
  };
  const onTouchEnd = ({ changedTouches }: TouchEvent) => {
    const end = changedTouches[0];
    const start = touch.current;
    if (start === null || end === undefined) return;
    const [across, down] = [end.clientX - start.x, Math.abs(end.clientY - start.y)];
    if (Math.abs(across) > SWIPE_PX && Math.abs(across) > 2 * down) go(index - Math.sign(across));
  };
  return (
    <dialog
      ref={dialog}
      tabIndex={-1}
      aria-label="Review requests"
      onKeyDown={onKeyDown}
      onTouchStart={({ touches }) => {
        const start = touches[0];
        touch.current = start === undefined ? null : { x: start.clientX, y: start.clientY };
      }}
      onTouchEnd={onTouchEnd}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      className="mx-auto mt-auto mb-[calc(100dvh-var(--view-height,100dvh))] flex max-h-[var(--view-height,100dvh)] w-full max-w-none flex-col rounded-t-lg bg-ground p-0 pb-[env(safe-area-inset-bottom)] text-ink shadow-2xl focus-quiet backdrop:bg-black/40 sm:mt-[12dvh] sm:mb-auto sm:max-h-[84dvh] sm:w-[min(760px,calc(100vw-48px))] sm:rounded-lg"
    >
      <header className="flex items-center gap-3 border-line border-b px-4 py-2 sm:px-5">
        <h2 className="tabular flex-1 font-medium" aria-live="polite">
          {index < ids.length
            ? `Request ${(index + 1).toLocaleString('en')} of ${ids.length.toLocaleString('en')}${hasMore ? '+' : ''}`
            : 'Review'}
          <span className="ml-3 font-normal text-2xs text-ink-2">
            {ignoredBy !== null && ignoredBy === current?.id && 'Not answered yet. Read the request, then press again.'}
          </span>
        </h2>
        <Step label="Previous request" icon={ChevronLeft} isOff={index === 0} onPress={() => go(index - 1)} />
        <Step label="Next request" icon={ChevronRight} isOff={index >= ids.length} onPress={() => go(index + 1)} />
        <Step label="Close" icon={X} onPress={onClose} />
      </header>
      {answerable.map((item) => (
        <Answer key={item.id} item={item} onChange={(isSent) => onAnswer(item.id, isSent)} />
      ))}
      <div className="min-h-0 flex-1 overflow-y-auto px-4 py-3 sm:px-5">
        {current !== undefined && hasRequest(current) ? (
          <>
            <RequestOwner item={current} />
            <OnDemand key={current.id} code={requestCode} name="The request" props={{ item: current }} />
          </>
        ) : (
          <div className="flex flex-wrap items-center gap-x-5 gap-y-3 py-6">
            <p className="flex-1">
              {left.length > 0
                ? `${plural(left.length, 'request')} left unanswered.`
                : !hasMore
                  ? 'No open requests left.'
                  : error === null
                    ? 'Loading more requests…'
                    : `More requests could not be loaded: ${error.message}`}
            </p>
            {hasMore && error !== null && (
              <button
                type="button"
                onClick={onRetry}
                className="min-h-8 rounded border border-line-strong px-3 font-medium hover:bg-raised"
              >
                Retry
              </button>
            )}
            {left.length > 0 && (
              <button
                type="button"
                onClick={() => go(ids.indexOf(left[0] as string))}
                className="min-h-8 rounded border border-line-strong px-3 font-medium hover:bg-raised"
              >
                Review {left.length === 1 ? 'it' : 'them'}
              </button>
            )}
            <button
              type="button"
              // biome-ignore lint/a11y/noAutofocus: Enter ends the review
              autoFocus={left.length === 0}
              onClick={onClose}
              className="min-h-8 rounded bg-ink px-3 font-medium text-ground hover:bg-ink-2"
            >
              Done
            </button>
          </div>
        )}
      </div>
    </dialog>
  );
}

function Step(props: { label: string; icon: typeof X; isOff?: boolean; onPress: () => void }) {
  const { label, icon, isOff = false, onPress } = props;
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      aria-disabled={isOff}
      onClick={() => !isOff && onPress()}
      className="hit grid size-6 place-items-center text-ink-3 hover:text-ink aria-disabled:opacity-40"
    >
      <Icon of={icon} size={16} />
    </button>
  );
}

/** The session and the agent of a request. */
function RequestOwner({ item }: { item: RequestedItem }) {
  const session = useFleet(({ sessions }) => sessions.get(item.sessionId));
  return (
    <p className="flex items-baseline gap-2 text-xs">
      <Link
        href={`/sessions/${encodeURIComponent(item.sessionId)}`}
        dir="auto"
        className="min-w-0 truncate font-medium hover:text-accent"
      >
        <Words text={ownerTitle(item, session) ?? ''} />
      </Link>
      <span className="shrink-0 text-ink-3">
        <Name text={item.agentId} />
      </span>
    </p>
  );
}

/** Reports when an answer to the request is on its way, and when it has failed. */
function Answer({ item, onChange }: { item: RequestedItem; onChange: (isSent: boolean) => void }) {
  const { isSent } = useAnswer(item);
  const report = useEffectEvent(onChange);
  const wasSent = useRef(false);
  useEffect(() => {
    if (isSent !== wasSent.current) report(isSent);
    wasSent.current = isSent;
  }, [isSent]);
  return null;
}
