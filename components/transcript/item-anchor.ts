'use client';

import type { Item } from '@interlude/protocol/read-models';
import { createContext } from 'react';

/** Where an item stands in the page; null for those that nothing leads to. */
export function itemAnchor(item: Item): string | null {
  switch (item.kind) {
    case 'task':
      return `task-${item.position}`;
    case 'message':
    case 'request':
      return `${item.kind}-${item.id}`;
    default:
      return null;
  }
}

/** The place somebody was led to last: it is shown, also in the middle of a turn of thousands. */
export const WantedAnchor = createContext<string | null>(null);
