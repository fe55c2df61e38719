'use client';

import type { Turn } from '@interlude/protocol/read-models';
import { type RefObject, useEffect, useRef } from 'react';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';

type TurnMove = 'next' | 'previous' | 'next-woken' | 'previous-woken' | 'first';

/** Walking through the turns by keyboard. The list and the log beside them have the same keys while the focus is in them. */
export function useTurnWalk(options: {
  scroller: RefObject<HTMLElement | null>;
  turns: readonly Turn[];
  firstVisible: () => number;
  onTurn: (anchor: string) => void;
  onLatest: () => void;
}): void {
  const { scroller, turns, firstVisible, onTurn, onLatest } = options;
  const cursor = useRef(-1);
  const walk = (move: TurnMove) => {
    const index = turnAfter(turns, move, cursor.current, firstVisible());
    cursor.current = index ?? -1;
    if (index !== null) onTurn(`turn-${turns[index]?.id}`);
  };
  const page = (step: number) => {
    const box = scroller.current;
    box?.scrollBy({ top: step * 0.9 * box.clientHeight });
  };
  useShortcuts({
    'transcript.next': () => walk('next'),
    'transcript.previous': () => walk('previous'),
    'transcript.next-woken': () => walk('next-woken'),
    'transcript.previous-woken': () => walk('previous-woken'),
    'transcript.first': () => walk('first'),
    'transcript.latest': () => {
      cursor.current = -1;
      onLatest();
    },
    'transcript.page-down': () => page(1),
    'transcript.page-up': () => page(-1),
  });
  // Who has scrolled on goes on from what they see.
  useEffect(() => {
    const box = scroller.current;
    const forget = () => {
      cursor.current = -1;
    };
    box?.addEventListener('wheel', forget, { passive: true });
    return () => box?.removeEventListener('wheel', forget);
  }, [scroller]);
}

/** Where a key leads, from the turn it led to last, else from the topmost visible one. */
function turnAfter(turns: readonly Turn[], move: TurnMove, cursor: number, visible: number): number | null {
  const from = cursor >= 0 ? cursor : visible;
  const woken = (turn: Turn) => turn.kind === 'between-run';
  switch (move) {
    case 'next':
      return Math.min(turns.length - 1, from + 1);
    case 'previous':
      return Math.max(0, cursor >= 0 ? from - 1 : from);
    case 'next-woken':
      return indexOrNull(turns.findIndex((turn, at) => at > from && woken(turn)));
    case 'previous-woken':
      return indexOrNull(turns.findLastIndex((turn, at) => at < from && woken(turn)));
    case 'first':
      return turns.length > 0 ? 0 : null;
  }
}

function indexOrNull(index: number): number | null {
  return index < 0 ? null : index;
}
