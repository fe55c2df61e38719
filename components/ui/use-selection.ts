'use client';

import { useState } from 'react';

/** Which rows of a list are selected, by id. One that has left the list stays selected, for when it comes back. */
export function useSelection() {
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const select = (id: string, isSelected: boolean) => {
    const next = new Set(selected);
    if (isSelected) next.add(id);
    else next.delete(id);
    setSelected(next);
  };
  const selectAll = (ids: Iterable<string>, isSelected: boolean) => {
    const next = new Set(selected);
    for (const id of ids)
      if (isSelected) next.add(id);
      else next.delete(id);
    setSelected(next);
  };
  return { selected, select, selectAll, selectOnly: (ids: Iterable<string>) => setSelected(new Set(ids)) };
}
