'use client';

import { type RefObject, useEffect, useEffectEvent } from 'react';
import { isTyping } from '@/components/ui/is-typing';

export type LogKey =
  | 'search'
  | 'clear-search'
  | 'next-hit'
  | 'previous-hit'
  | 'follow'
  | 'wrap'
  | 'first'
  | 'end'
  | 'line-down'
  | 'line-up'
  | 'open'
  | { level: number };

const KEYS: Record<string, LogKey> = {
  '/': 'search',
  Escape: 'clear-search',
  n: 'next-hit',
  N: 'previous-hit',
  f: 'follow',
  w: 'wrap',
  g: 'first',
  G: 'end',
  j: 'line-down',
  k: 'line-up',
  Enter: 'open',
  ...Object.fromEntries([1, 2, 3, 4, 5].map((digit) => [String(digit), { level: digit - 1 }])),
};

/**
 * The keys of a log. On its own page they are for it wherever the focus is; beside something else only while the focus
 * is in it, and then nothing else hears them.
 */
export function useLogKeys(
  box: RefObject<HTMLElement | null>,
  { isPage, isSearched }: { isPage: boolean; isSearched: boolean },
  onKey: (key: LogKey) => void,
): void {
  const handle = useEffectEvent(onKey);
  // Esc leads one step out: of a log that is searched into all of it, of another one to where the reader came from.
  const isOurs = useEffectEvent((key: LogKey) => key !== 'clear-search' || isSearched);
  useEffect(() => {
    const target: EventTarget | null = isPage ? document : box.current;
    if (target === null) return;
    const listen = (event: Event) => {
      const { key, metaKey, ctrlKey, altKey, repeat, defaultPrevented } = event as KeyboardEvent;
      if (defaultPrevented || metaKey || ctrlKey || altKey || isTyping(event)) return;
      // One that is held was meant for the first step.
      if (key === 'Escape' && repeat) return;
      const wanted = KEYS[key];
      if (
        wanted === undefined ||
        !isOurs(wanted) ||
        document.querySelector('dialog[open], [data-radix-popper-content-wrapper]')
      )
        return;
      const element = event.target instanceof Element ? event.target : null;
      // the list of sessions beside it has keys of its own
      if (element?.closest('nav')) return;
      // Enter on a control is the control's
      if (key === 'Enter' && element?.closest('a, button, [role=radio], [role=switch]')) return;
      event.preventDefault();
      event.stopPropagation();
      handle(wanted);
    };
    // Before those of the list of sessions, which has "/" too.
    target.addEventListener('keydown', listen, { capture: isPage });
    return () => target.removeEventListener('keydown', listen, { capture: isPage });
  }, [box, isPage]);
}
