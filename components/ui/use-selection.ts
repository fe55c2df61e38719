'use client';

import { useState } from 'react';

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
  return { selected, select, selectAll, selectOnly: (ids: Iterable<string>) => setSelected(new Set(ids)) };
}
