'use client';

import { type ChangeEvent, useRef, useState } from 'react';

/** Selected row ids of a list. A row stays selected while it is out of the list. */
export function useSelection() {
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const selectAll = (ids: Iterable<string>, isSelected: boolean) => {
    const next = new Set(selected);
    for (const id of ids) {
      if (isSelected) next.add(id);
      else next.delete(id);
    }
    setSelected(next);
  };
  const select = (id: string, isSelected: boolean) => selectAll([id], isSelected);
  const last = useRef('');
  /** Ids from the last `id` to this one, in the order of `ids`; only `id` if either is missing. */
  const rangeTo = (id: string, ids: readonly string[]) => {
    const [from = -1, to] = [ids.indexOf(last.current), ids.indexOf(id)].sort((a, b) => a - b);
    last.current = id;
    return from < 0 ? [id] : ids.slice(from, Number(to) + 1);
  };
  return { selected, select, selectAll, rangeTo, selectOnly: (ids: Iterable<string>) => setSelected(new Set(ids)) };
}

/** True if the press on a checkbox selects all rows from the last one, because Shift is held. */
export function isRange({ nativeEvent }: ChangeEvent): boolean {
  return (nativeEvent as MouseEvent).shiftKey;
}
