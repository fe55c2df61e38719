'use client';

import type { Item, Task } from '@interlude/protocol/read-models';
import type { ReactNode } from 'react';
import { useSelected } from '@/components/live/use-folded';
import { useTaskDetail } from './use-tasks';

/** What a subagent said and did, loaded when it is asked for and live from then on. */
export function TaskSteps(props: {
  task: Task;
  renderItems: (items: readonly Item[], endedAt: number | null) => ReactNode;
}) {
  const { task, renderItems } = props;
  const { store, query } = useTaskDetail(task);
  const value = useSelected(store, (detail) => detail.value);
  if (query.isError) {
    return (
      <p className="text-ink-3 text-xs">
        {query.error.message}{' '}
        <button type="button" onClick={() => query.refetch()} className="underline hover:text-ink">
          Try again
        </button>
      </p>
    );
  }
  if (value === undefined) return <p className="text-ink-3 text-xs">Loading what it did…</p>;
  if (value.items.length === 0) {
    return (
      <p className="text-ink-3 text-xs">
        {task.status === 'running' ? 'Nothing said or done yet.' : 'It left no record of what it did.'}
      </p>
    );
  }
  return renderItems(value.items, task.endedAt);
}
