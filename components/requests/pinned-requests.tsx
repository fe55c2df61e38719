'use client';

import type { RequestItem, Turn } from '@interlude/protocol/read-models';
import { Fragment, type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import { useActions } from '@/components/live/actions';
import { afterPress } from '@/components/ui/after-press';
import { useServerNow } from '@/components/ui/clock';
import { JumpLink } from '@/components/ui/jump';
import { SETTLE_MS } from '@/components/ui/misclick-guard';
import { closedText, requestKey, withExpiry } from './request-answer';
import { useVisibleRequests } from './request-board';
import { useFocusWithin } from './use-focus-within';

/**
 * Pins an open request while its card in the transcript is out of sight. One at a time, until the reader answers it,
 * scrolls to it or dismisses it.
 */
export function PinnedRequests(props: {
  requests: readonly RequestItem[];
  /** Returns the current state of a request. */
  find: (item: RequestItem) => RequestItem | null;
  renderRequest: (item: RequestItem, onDismiss: () => void) => ReactNode;
}) {
  const { requests, find, renderRequest } = props;
  const visible = useVisibleRequests();
  const actions = useActions();
  const { hasFocus, leave, handlers } = useFocusWithin();
  const group = useRef<HTMLDivElement>(null);
  const [pinned, setPinned] = useState<RequestItem | null>(null);
  const found = pinned === null ? null : find(pinned);
  const over = useServerNow((now) => keysOver(found === null ? requests : [...requests, found], now));
  const overKeys = useMemo(() => new Set(JSON.parse(over) as string[]), [over]);
  const now = (item: RequestItem) =>
    withExpiry(item, overKeys.has(requestKey(item)), actions?.get(requestKey(item)) ?? null);
  const hidden = requests.filter((item) => now(item).outcome === null && !visible.has(requestKey(item)));
  const current = found === null ? null : now(found);
  const hasNotice = current !== null && closedText(current, actions?.get(requestKey(current)) ?? null) !== null;
  const [settledKey, setSettledKey] = useState<string | null>(null);
  const isSettled = current !== null && settledKey === requestKey(current);
  const shown = nextPinned({ current, hidden, hasFocus, isSettled, hasNotice });
  if (shown !== pinned) setPinned(shown);
  const isClosed = shown !== null && shown.outcome !== null;
  const key = shown === null ? null : requestKey(shown);
  const dismiss = () => {
    leave();
    setPinned(null);
  };

  useEffect(() => {
    const timer = setTimeout(() => setSettledKey(key), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [key]);
  // A reader who moves on has seen the outcome.
  useEffect(() => {
    if (!isClosed) return;
    const listen = ({ target }: Event) => {
      if (target instanceof Node && group.current?.contains(target) === false) afterPress(() => setPinned(null));
    };
    const listening = new AbortController();
    for (const type of ['focusin', 'pointerdown']) document.addEventListener(type, listen, listening);
    return () => listening.abort();
  }, [isClosed]);

  if (shown === null) return null;
  const others = hidden.filter((item) => requestKey(item) !== key).length;
  return (
    // biome-ignore lint/a11y/useSemanticElements: contains a section for each request
    <div
      ref={group}
      role="group"
      aria-label="Waiting for you"
      data-pins=""
      className="shrink-0 border-line border-t"
      {...handlers}
    >
      {/* Leaves the transcript half of the height, with the log below too. */}
      <div className="session-column max-h-[max(calc(var(--view-height,100dvh)*0.5-80px),min(var(--view-height,100dvh)*0.45,240px))] overflow-y-auto py-2 group-data-log/page:max-h-[max(calc(25dvh+8px),160px)]">
        <Fragment key={key}>{renderRequest(shown, dismiss)}</Fragment>
        <p className="mt-1 flex gap-3 text-2xs text-ink-3">
          <JumpLink anchor={`request-${shown.id}`} className="underline hover:text-ink">
            Show in transcript
          </JumpLink>
          {others > 0 && <span>{others} more after this</span>}
        </p>
      </div>
    </div>
  );
}

/** Keys of expired requests as one string, so that only a change causes a render. */
function keysOver(items: readonly RequestItem[], now: number): string {
  const over = items.filter(({ expiresAt }) => expiresAt !== null && now >= expiresAt);
  return JSON.stringify(over.map(requestKey));
}

/**
 * Selects the request to pin.
 *
 * Ordering: oldest first. A settled one stays while it is open and out of sight, even if an older one appears, and while
 * it has the focus. A closed one stays until the reader moves on.
 *
 * @param current the pinned request in its current state; null if there is none
 * @param hidden open requests that are out of sight, oldest first
 * @param isSettled `current` has been pinned long enough to accept presses
 * @param hasNotice `current` was closed, but not by this page's answer
 */
export function nextPinned(state: {
  current: RequestItem | null;
  hidden: readonly RequestItem[];
  hasFocus: boolean;
  isSettled: boolean;
  hasNotice: boolean;
}): RequestItem | null {
  const { current, hidden, hasFocus, isSettled, hasNotice } = state;
  if (current !== null) {
    const isHidden = hidden.some((item) => requestKey(item) === requestKey(current));
    if (current.outcome === null ? hasFocus || (isHidden && isSettled) : hasNotice) return current;
  }
  return hidden[0] ?? null;
}

/**
 * Open requests, oldest first.
 *
 * @param count number of open requests, which bounds the search. The count may be out of date, so the result includes
 *   all requests of the last turn searched
 */
export function openRequests(turns: readonly Turn[], count: number): RequestItem[] {
  const open: RequestItem[] = [];
  for (let index = turns.length - 1; index >= 0 && open.length < count; index--) {
    for (const item of turns[index]?.items.toReversed() ?? []) {
      if (item.kind === 'request' && item.outcome === null) open.push(item);
    }
  }
  return open.reverse();
}

/** The current state of a request; null if the turns no longer contain it. */
export function findRequest(turns: readonly Turn[], wanted: RequestItem): RequestItem | null {
  const key = requestKey(wanted);
  for (let index = turns.length - 1; index >= 0; index--) {
    const found = turns[index]?.items.find((item) => item.kind === 'request' && requestKey(item) === key);
    if (found?.kind === 'request') return found;
  }
  return null;
}
