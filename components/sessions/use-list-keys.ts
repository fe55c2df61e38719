'use client';

import { type RefObject, useEffect } from 'react';
import { isTyping } from '@/components/ui/is-typing';

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
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return;
      const box = list.current;
      if (!box || box.offsetParent === null) return;
      const inSearch = event.target === search.current;
      if (event.key === '/' && !isTyping(event)) {
        event.preventDefault();
        search.current?.focus();
        search.current?.select();
        return;
      }
      if (isTyping(event) && !(inSearch && event.key === 'ArrowDown')) return;
      // On a session's page the same keys walk through its turns, unless the list has the focus.
      if (!everywhere && !box.contains(document.activeElement)) return;
      const step =
        event.key === 'j' || event.key === 'ArrowDown' ? 1 : event.key === 'k' || event.key === 'ArrowUp' ? -1 : 0;
      if (step === 0) return;
      const rows = [...box.querySelectorAll<HTMLElement>(ROWS)];
      const focused = rows.indexOf(document.activeElement as HTMLElement);
      const at = focused >= 0 ? focused : rows.findIndex((row) => row.dataset.sessionRow === startId);
      const next =
        at < 0 ? (step > 0 ? rows[0] : rows.at(-1)) : rows[Math.min(rows.length - 1, Math.max(0, at + step))];
      if (!next) return;
      event.preventDefault();
      next.focus();
      next.scrollIntoView({ block: 'nearest' });
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [list, search, everywhere, startId]);
}
