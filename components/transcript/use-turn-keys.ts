'use client';

import { useEffect, useEffectEvent } from 'react';
import { isTyping } from '@/components/ui/is-typing';

export type TurnMove =
  | 'next'
  | 'previous'
  | 'next-woken'
  | 'previous-woken'
  | 'latest'
  | 'first'
  | 'page-down'
  | 'page-up';

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
export function useTurnKeys(onMove: (move: TurnMove) => void): void {
  const handle = useEffectEvent(onMove);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || isTyping(event)) return;
      const move = MOVES[event.key];
      if (move === undefined || document.querySelector('dialog[open]')) return;
      if (event.target instanceof Element && event.target.closest('nav, [data-own-keys]')) return;
      event.preventDefault();
      handle(move);
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
}
