'use client';

import { comparePositions } from '@interlude/protocol/position';
import type { Item, Task, Turn } from '@interlude/protocol/read-models';
import { type ReactNode, useMemo } from 'react';
import { renderRequest } from '@/app/(console)/render-request';
import { TaskCard } from '@/components/tasks/task-card';
import { TaskEndLine } from '@/components/tasks/task-summary';
import { isBoilerplate, taskAnchor } from '@/components/tasks/task-words';
import { ItemList } from '@/components/transcript/item-list';
import type { TranscriptSlots } from '@/components/transcript/transcript-slots';
import { useTaskNames } from './use-named-tasks';

/** How the transcript shows tasks, from the tasks' own read model, and requests. Without a composer, nothing more. */
export function useTaskSlots(tasks: readonly Task[], turns: readonly Turn[] | undefined): TranscriptSlots {
  const oldest = turns?.[0]?.position;
  const names = useTaskNames(tasks);
  return useMemo((): TranscriptSlots => {
    const hasCard = (task: Task) =>
      oldest !== undefined && task.startedInTurnId !== null && comparePositions(task.position, oldest) >= 0;
    return {
      ...names,
      tellingSummary: (task) => (task.summary === null || isBoilerplate(task) ? null : task.summary),
      anchorOf: taskAnchor,
      hasCard,
      renderTask: (item, call) => {
        const task = names.findTask(item);
        if (task === null) return call;
        if (item.phase === 'started') return <TaskCard task={task} call={call} renderItems={renderSteps} />;
        return <TaskEndLine task={task} item={item} standsAlone={!hasCard(task)} />;
      },
      renderRequest: (item) => renderRequest(item),
      renderDelivery: () => null,
      renderOwed: () => null,
      quoteOf: () => null,
      hrefOf: () => null,
      replyTo: null,
    };
  }, [names, oldest]);
}

/** A subagent's own background tasks have cards of their own in the transcript; here they are not repeated. */
function renderSteps(items: readonly Item[], endedAt: number | null): ReactNode {
  return (
    <ItemList
      items={items}
      endedAt={endedAt}
      renderTask={() => null}
      renderRequest={(item) => renderRequest(item)}
      startedBy={() => null}
    />
  );
}
