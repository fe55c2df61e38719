'use client';

import type { RequestItem, Turn } from '@interlude/protocol/read-models';
import { Fragment, type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import { useActions } from '@/components/live/actions';
import { JumpLink } from '@/components/ui/jump';
import { afterPress, SETTLE_MS } from '@/components/ui/misclick-guard';
import { useServerNow } from '@/components/ui/now';
import { withExpiry, closedText, requestKey } from './request-answer';
import { useVisibleRequests } from './request-board';
import { useFocusWithin } from './use-focus-within';

/**
 * What the agent waits for, kept in sight while its place in the transcript is not. One at a time, and the same one
 * until it was answered here, the reader goes to it, or they are done with it.
 */
export function PinnedRequests(props: {
  requests: readonly RequestItem[];
  /** The same request as it is now. */
  find: (item: RequestItem) => RequestItem | null;
  renderRequest: (item: RequestItem, onDismiss: () => void) => ReactNode;
}) {
  const { requests, find, renderRequest } = props;
  const visible = useVisibleRequests();
  const actions = useActions();
  const { hasFocus, leave, handlers } = useFocusWithin();
  const group = useRef<HTMLDivElement>(null);
  const [held, setHeld] = useState<RequestItem | null>(null);
  const found = held === null ? null : find(held);
  const over = useServerNow((now) => keysOver(found === null ? requests : [...requests, found], now));
  const overKeys = useMemo(() => new Set(JSON.parse(over) as string[]), [over]);
  const now = (item: RequestItem) =>
    withExpiry(item, overKeys.has(requestKey(item)), actions?.get(requestKey(item)) ?? null);
  const hidden = requests.filter((item) => now(item).outcome === null && !visible.has(requestKey(item)));
  const current = found === null ? null : now(found);
  const stays = current !== null && closedText(current, actions?.get(requestKey(current)) ?? null) !== null;
  const [settledKey, setSettledKey] = useState<string | null>(null);
  const isSettled = current !== null && settledKey === requestKey(current);
  const shown = nextPinned({ current, hidden, hasFocus, isSettled, stays });
  if (shown !== held) setHeld(shown);
  const isGone = shown !== null && shown.outcome !== null;
  const key = shown === null ? null : requestKey(shown);
  const dismiss = () => {
    leave();
    setHeld(null);
  };

  useEffect(() => {
    const timer = setTimeout(() => setSettledKey(key), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [key]);
  // A reader who turns to something else has seen what became of it.
  useEffect(() => {
    if (!isGone) return;
    const listen = ({ target }: Event) => {
      if (target instanceof Node && group.current?.contains(target) === false) afterPress(() => setHeld(null));
    };
    const listening = new AbortController();
    for (const type of ['focusin', 'pointerdown']) document.addEventListener(type, listen, listening);
    return () => listening.abort();
  }, [isGone]);

  if (shown === null) return null;
  const others = hidden.filter((item) => requestKey(item) !== key).length;
  return (
    // biome-ignore lint/a11y/useSemanticElements: it holds a section for each request
    <div ref={group} role="group" aria-label="Waiting for you" className="shrink-0 border-line border-t" {...handlers}>
      <div className="mx-auto max-h-[45dvh] max-w-[960px] overflow-y-auto px-4 py-2 sm:pr-6 sm:pl-[86px]">
        <Fragment key={key}>{renderRequest(shown, dismiss)}</Fragment>
        <p className="mt-1 flex gap-3 text-2xs text-ink-3">
          <JumpLink anchor={`request-${shown.id}`} className="underline hover:text-ink">
            Show where it was asked
          </JumpLink>
          {others > 0 && <span>{others} more after this</span>}
        </p>
      </div>
    </div>
  );
}

/** The keys of those whose time is over, in one text: only a change of it renders. */
function keysOver(items: readonly RequestItem[], now: number): string {
  const over = items.filter(({ expiresAt }) => expiresAt !== null && now >= expiresAt);
  return JSON.stringify(over.map(requestKey));
}

/**
 * Which request is pinned next to the one that is.
 *
 * Ordering: the oldest goes first. One that has been pinned for long enough to be pressed stays while it is open and
 * out of sight, whatever is found to be older; and while the focus is in it, wherever its place is. One that is over
 * stays as long as the reader has not moved on.
 *
 * @param current what is pinned, as it is now; null if nothing is, or it is known no more
 * @param hidden the open ones whose place is out of sight, oldest first
 * @param isSettled it has been pinned for so long that it takes presses
 * @param stays it is over, and not because this page answered it
 */
export function nextPinned(state: {
  current: RequestItem | null;
  hidden: readonly RequestItem[];
  hasFocus: boolean;
  isSettled: boolean;
  stays: boolean;
}): RequestItem | null {
  const { current, hidden, hasFocus, isSettled, stays } = state;
  if (current !== null) {
    const isHidden = hidden.some((item) => requestKey(item) === requestKey(current));
    if (current.outcome === null ? hasFocus || (isHidden && isSettled) : stays) return current;
  }
  return hidden[0] ?? null;
}

/**
 * The requests nobody has answered, oldest first.
 *
 * @param count how many there are: the search ends with the turn that has the last of them. It may be older than the
 *   turns are, so of that turn all are taken: else the newest would stand there alone until the count is as new
 */
export function openRequests(turns: readonly Turn[], count: number): RequestItem[] {
  const open: RequestItem[] = [];
  for (let at = turns.length - 1; at >= 0 && open.length < count; at--) {
    for (const item of turns[at]?.items.toReversed() ?? []) {
      if (item.kind === 'request' && item.outcome === null) open.push(item);
    }
  }
  return open.reverse();
}

/** The same request as it is now, open or not; null if the turns have it no more. */
export function findRequest(turns: readonly Turn[], wanted: RequestItem): RequestItem | null {
  const key = requestKey(wanted);
  for (let at = turns.length - 1; at >= 0; at--) {
    const found = turns[at]?.items.find((item) => item.kind === 'request' && requestKey(item) === key);
    if (found?.kind === 'request') return found;
  }
  return null;
}
