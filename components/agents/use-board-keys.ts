'use client';

import { useRouter } from 'next/navigation';
import type { RefObject } from 'react';
import { focusRow, focusSearch, rowsIn } from '@/components/ui/focus-row';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';

const ROW = '[data-agent-row]';

/** j/k and the arrows move through the agents, x selects, Enter opens, and "/" focuses the search field. */
export function useBoardKeys(options: {
  /** Contains the search field and the rows. */
  box: RefObject<HTMLElement | null>;
  field: RefObject<HTMLInputElement | null>;
  onToggle: (id: string) => void;
  /** Clears the selection, then the filter. @returns false if there is neither */
  onClear: () => false | undefined;
}): void {
  const { box, field, onToggle, onClear } = options;
  const rows = () => rowsIn(box.current, ROW);
  const focusedId = () => document.activeElement?.closest<HTMLElement>(ROW)?.dataset.agentRow;
  const move = (step: 1 | -1) => {
    const all = rows();
    // Rows above the window are rendered, too.
    const head = box.current?.querySelector('[role=rowgroup]')?.getBoundingClientRect().bottom ?? 0;
    const firstInView = all.findIndex((row) => row.getBoundingClientRect().top >= head);
    return focusRow(all, step, step > 0 ? all[firstInView - 1] : undefined);
  };
  const onFocused = (act: (id: string) => void) => () => {
    const id = focusedId();
    if (id === undefined) return false;
    act(id);
  };
  const router = useRouter();
  useShortcuts(
    {
      'list.search': () => focusSearch(field.current),
      'board.next': () => move(1),
      'board.previous': () => move(-1),
      'board.select': onFocused(onToggle),
      'board.open': onFocused((id) => router.push(`/agents/${encodeURIComponent(id)}`)),
      'board.leave-search': ({ target }) => {
        if (target === field.current) box.current?.focus({ preventScroll: true });
        else return target instanceof HTMLSelectElement ? false : onClear();
      },
    },
    { area: box, leads: true },
  );
}
