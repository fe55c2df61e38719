'use client';

import { ArrowDown } from 'lucide';
import { useState } from 'react';
import { Icon } from '@/components/ui/icon';
import { countOf } from '@/components/ui/size-of';
import type { LogStore } from './log-store';
import { useLogStore } from './use-log-store';

/** The way back to the end, and how much has come there since the reader left it. */
export function NewLines({ store, onEnd }: { store: LogStore; onEnd: () => void }) {
  const [leftAt] = useState(store.liveCount);
  const count = (useLogStore(store, ({ liveCount }) => liveCount) ?? leftAt) - leftAt;
  return (
    <button
      type="button"
      onClick={onEnd}
      className="-translate-x-1/2 absolute bottom-3 left-1/2 flex items-center gap-1.5 rounded-full bg-ink px-3 py-1 text-ground text-xs shadow-lg hover:bg-ink-2"
    >
      <Icon of={ArrowDown} size={13} />
      <span className="tabular">{count > 0 ? countOf(count, 'new line') : 'Jump to the end'}</span>
    </button>
  );
}
