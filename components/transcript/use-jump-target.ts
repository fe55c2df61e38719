'use client';

import type { TranscriptState } from '@interlude/protocol/projections/transcript-state';
import type { Turn } from '@interlude/protocol/read-models';
import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import { setAddressAnchor, useAddressAnchor } from '@/components/ui/jump';
import type { RowVirtualizer } from '@/components/ui/row-window';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';
import { useLatest } from '@/components/ui/use-latest';
import { itemAnchor } from './item-rows';
import { FIRST_TURN, type Lookup } from './lookup-notice';
import { isAnchor } from './server-markup';
import type { SeekResult } from './transcript-store';

const FLASH_MS = 2_200;
/** Lookups shorter than this are not announced. */
const QUIET_MS = 400;
/** Frames to wait for a row after scrolling to it. */
const MAX_FRAMES = 30;

/**
 * Scrolls to a turn (`turn-<id>`), a task's card (`task-<position>`), a message or a request (by id), loaded or not.
 * Follows the URL.
 */
export function useJumpTarget(options: {
  turns: readonly Turn[];
  virtualizer: Omit<RowVirtualizer, 'containerRef'>;
  seek: (isThere: (state: TranscriptState) => boolean) => Promise<SeekResult>;
}) {
  const { turns, virtualizer, seek } = options;
  const [flashed, setFlashed] = useState<string | null>(null);
  const [wanted, setWanted] = useState<string | null>(null);
  const newest = useLatest(turns);
  // The latest jump wins, however long an earlier one takes.
  const latestJump = useRef(0);

  const show = useCallback(
    async (goal: string, { focus = true, onResult }: ShowOptions = {}): Promise<boolean> => {
      latestJump.current += 1;
      const jumpId = latestJump.current;
      let anchor = goal;
      const result = await seek((state) => {
        if (goal !== FIRST_TURN) return indexOf(state.turns, goal) >= 0;
        const [first] = state.turns;
        if (first !== undefined) anchor = `turn-${first.id}`;
        return !state.hasMore;
      });
      if (jumpId !== latestJump.current) return result === 'there';
      onResult?.(result);
      if (result !== 'there') return false;
      if (anchor !== goal) setAddressAnchor(anchor, 'replace');
      if (!anchor.startsWith('turn-')) setWanted(anchor);
      // Loaded turns must render before they can be scrolled to.
      for (let frame = 0; frame < MAX_FRAMES && indexOf(newest.current, anchor) < 0; frame++) await nextFrame();
      if (jumpId !== latestJump.current) return true;
      const turn = newest.current[indexOf(newest.current, anchor)];
      if (!turn) return false;
      // A jump that doesn't move the focus doesn't scroll to a target in view.
      const isInView = !focus && beginsInView(document.getElementById(anchor), virtualizer.scrollElement);
      const scroll = () => {
        const index = indexOf(newest.current, anchor);
        // A note about removed turns is above the first turn.
        if (index === 0) virtualizer.scrollToOffset(0);
        else if (index > 0) virtualizer.scrollToIndex(index, { align: 'start' });
      };
      if (!isInView) scroll();
      const element = await waitFor(() => {
        const found = document.getElementById(anchor);
        // Turns loaded or removed meanwhile may have moved the target.
        if (found === null && !isInView) scroll();
        return found;
      });
      if (jumpId !== latestJump.current) return true;
      if (!element) return false;
      if (!isInView && !anchor.startsWith('turn-')) element.scrollIntoView({ block: 'center' });
      if (focus) element.focus({ preventScroll: true });
      setFlashed(anchor.startsWith('turn-') ? turn.id : null);
      if (!anchor.startsWith('turn-')) flashElement(element);
      return true;
    },
    [seek, virtualizer, newest],
  );

  useEffect(() => {
    if (flashed === null) return;
    const timer = setTimeout(() => setFlashed(null), FLASH_MS);
    return () => clearTimeout(timer);
  }, [flashed]);

  const [lookup, setLookup] = useState<Lookup | null>(null);
  const closeLookup = useCallback(() => setLookup(null), []);
  /** Shows a link's target, or the reason it can't be shown. */
  const follow = useCallback(
    ({ anchor, fromAddress }: Pick<Lookup, 'anchor' | 'fromAddress'>) => {
      const timer = setTimeout(() => setLookup({ anchor, fromAddress, state: 'seeking' }), QUIET_MS);
      const settle = (result: SeekResult) => {
        clearTimeout(timer);
        setLookup(
          result === 'there'
            ? null
            : result === 'missing'
              ? { anchor, fromAddress, state: 'missing' }
              : { anchor, fromAddress, state: 'failed', reason: result.message },
        );
        // An unknown anchor in the URL leads to the end.
        if (result !== 'there' && fromAddress) virtualizer.scrollToEnd();
      };
      setLookup(null);
      show(anchor, { onResult: settle }).finally(() => {
        clearTimeout(timer);
        // Another jump has started.
        setLookup((now) => (now?.state === 'seeking' && now.anchor === anchor ? null : now));
      });
    },
    [show, virtualizer],
  );

  useAddressAnchor((anchor, isFirst) => {
    if (isAnchor(anchor)) follow({ anchor, fromAddress: isFirst });
  });

  const jump = useCallback(
    (anchor: string) => {
      setAddressAnchor(anchor, 'push');
      follow({ anchor, fromAddress: false });
    },
    [follow],
  );
  /** Replaces the history entry, for keys that are held down. */
  const step = useCallback(
    (anchor: string) => {
      setAddressAnchor(anchor, 'replace');
      show(anchor);
    },
    [show],
  );
  const toFirst = useCallback(() => follow({ anchor: FIRST_TURN, fromAddress: false }), [follow]);
  return { show, jump, step, toFirst, flashed, wanted, lookup, closeLookup, follow };
}

interface ShowOptions {
  focus?: boolean;
  /** Called with the outcome before scrolling, unless another jump has started. */
  onResult?: (result: SeekResult) => void;
}

function indexOf(turns: readonly Turn[], anchor: string): number {
  const [, kind, id] = /^(turn|task|message|request)-(.+)$/s.exec(anchor) ?? [];
  if (kind === 'turn') return turns.findIndex((turn) => turn.id === id);
  return turns.findIndex((turn) => turn.items.some((item) => itemAnchor(item) === anchor));
}

/** True if the element starts in the upper half of the box. */
function beginsInView(element: HTMLElement | null, box: HTMLElement | null): boolean {
  if (element === null || box === null) return false;
  const { top, height } = box.getBoundingClientRect();
  const begins = element.getBoundingClientRect().top - top;
  return begins >= 0 && begins < height / 2;
}

function flashElement(element: HTMLElement): void {
  element.animate?.([{ backgroundColor: 'var(--accent-soft)' }, { backgroundColor: 'transparent' }], {
    duration: FLASH_MS,
    easing: 'ease-out',
  });
}

const nextFrame = () => new Promise<void>((resolve) => requestAnimationFrame(() => resolve()));

async function waitFor<Found>(find: () => Found | null | undefined): Promise<Found | null> {
  for (let frame = 0; frame < MAX_FRAMES; frame++) {
    const found = find();
    if (found) return found;
    await nextFrame();
  }
  return null;
}

type TurnMove = 'next' | 'previous' | 'next-woken' | 'previous-woken';

/** Keyboard navigation between turns. The session list and the log use the same keys while they have the focus. */
export function useTurnWalk(options: {
  scroller: RefObject<HTMLElement | null>;
  turns: readonly Turn[];
  firstVisible: () => number;
  onTurn: (anchor: string) => void;
  onFirst: () => void;
  onLatest: () => void;
}): void {
  const { scroller, turns, firstVisible, onTurn, onFirst, onLatest } = options;
  const cursor = useRef(-1);
  // Another tab may cover the transcript.
  const isCovered = () => scroller.current?.closest('[inert]') != null;
  const walk = (move: TurnMove) => {
    if (isCovered()) return false;
    const index = turnAfter(turns, move, cursor.current, firstVisible());
    cursor.current = index ?? -1;
    if (index !== null) onTurn(`turn-${turns[index]?.id}`);
    return true;
  };
  const goTo = (index: number, go: () => void) => {
    if (isCovered()) return false;
    cursor.current = index;
    go();
  };
  const page = (step: number) => {
    if (isCovered()) return false;
    const box = scroller.current;
    box?.scrollBy({ top: step * 0.9 * box.clientHeight });
    return true;
  };
  useShortcuts({
    'transcript.next': () => walk('next'),
    'transcript.previous': () => walk('previous'),
    'transcript.next-woken': () => walk('next-woken'),
    'transcript.previous-woken': () => walk('previous-woken'),
    'transcript.first': () => goTo(0, onFirst),
    'transcript.latest': () => goTo(-1, onLatest),
    'transcript.page-down': () => page(1),
    'transcript.page-up': () => page(-1),
  });
  // After scrolling, navigation continues at the visible turn.
  useEffect(() => {
    const box = scroller.current;
    const forget = () => {
      cursor.current = -1;
    };
    box?.addEventListener('wheel', forget, { passive: true });
    return () => box?.removeEventListener('wheel', forget);
  }, [scroller]);
}

/** The turn that a key moves to, relative to the turn of the last key press, else to the topmost visible turn. */
function turnAfter(turns: readonly Turn[], move: TurnMove, cursor: number, visible: number): number | null {
  const from = cursor >= 0 ? cursor : visible;
  const woken = (turn: Turn) => turn.kind === 'between-run';
  switch (move) {
    case 'next':
      return Math.min(turns.length - 1, from + 1);
    case 'previous':
      return Math.max(0, cursor >= 0 ? from - 1 : from);
    case 'next-woken':
      return indexOrNull(turns.findIndex((turn, index) => index > from && woken(turn)));
    case 'previous-woken':
      return indexOrNull(turns.findLastIndex((turn, index) => index < from && woken(turn)));
  }
}

function indexOrNull(index: number): number | null {
  return index < 0 ? null : index;
}
