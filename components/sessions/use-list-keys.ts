'use client';

import type { RefObject } from 'react';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';

const ROWS = '[data-session-row], [data-more-rows]';

/** j/k and the arrows move through the list, "/" goes to the search. Enter is the link's own. */
export function useListKeys(options: {
  list: RefObject<HTMLElement | null>;
  search: RefObject<HTMLInputElement | null>;
  /** Whether j and k move here wherever the focus is. */
  everywhere: boolean;
  /** The session last looked at: where the keys begin. */
  startId: string | null;
}): void {
  const { list, search, everywhere, startId } = options;
  const move = (step: 1 | -1) => {
    const rows = [...(list.current?.querySelectorAll<HTMLElement>(ROWS) ?? [])];
    const focused = rows.indexOf(document.activeElement as HTMLElement);
    const at = focused >= 0 ? focused : rows.findIndex((row) => row.dataset.sessionRow === startId);
    const next = at < 0 ? (step > 0 ? rows[0] : rows.at(-1)) : rows[Math.min(rows.length - 1, Math.max(0, at + step))];
    if (next === undefined) return false;
    next.focus();
    next.scrollIntoView({ block: 'nearest' });
  };
  useShortcuts(
    {
      'sessions.search': () => {
        // On a phone the list steps aside.
        if (list.current === null || list.current.offsetParent === null) return false;
        search.current?.focus();
        search.current?.select();
      },
      'sessions.first-found': ({ target }) => (target === search.current ? move(1) : false),
      'sessions.next': () => move(1),
      'sessions.previous': () => move(-1),
    },
    { area: list, leads: everywhere },
  );
}
