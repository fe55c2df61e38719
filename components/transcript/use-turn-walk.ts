'use client';

import { type RefObject, useEffect, useEffectEvent, useRef } from 'react';
import { isTyping } from '@/components/ui/is-typing';
import type { Turn } from '@/lib/protocol/read-models';

type TurnMove = 'next' | 'previous' | 'next-woken' | 'previous-woken' | 'latest' | 'first' | 'page-down' | 'page-up';

const MOVES: Record<string, TurnMove> = {
  j: 'next',
  k: 'previous',
  w: 'next-woken',
  W: 'previous-woken',
  G: 'latest',
  End: 'latest',
  Home: 'first',
  PageDown: 'page-down',
  PageUp: 'page-up',
};

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
  const walk = useEffectEvent((move: TurnMove) => {
    if (move === 'page-down' || move === 'page-up') {
      const box = scroller.current;
      box?.scrollBy({ top: (move === 'page-down' ? 0.9 : -0.9) * box.clientHeight });
      return;
    }
    const index = turnAfter(turns, move, cursor.current, firstVisible());
    cursor.current = index ?? -1;
    if (move === 'latest') onLatest();
    else if (index !== null) onTurn(`turn-${turns[index]?.id}`);
  });
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || isTyping(event)) return;
      const move = MOVES[event.key];
      if (move === undefined || document.querySelector('dialog[open]')) return;
      if (event.target instanceof Element && event.target.closest('nav, [data-own-keys]')) return;
      event.preventDefault();
      walk(move);
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
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
function turnAfter(
  turns: readonly Turn[],
  move: Exclude<TurnMove, 'page-down' | 'page-up'>,
  cursor: number,
  visible: number,
): number | null {
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
    case 'latest':
      return null;
  }
}

function indexOrNull(index: number): number | null {
  return index < 0 ? null : index;
}
