'use client';

import type { PlanItem } from '@interlude/protocol/read-models';
import { ListChecks } from 'lucide';
import { memo, useMemo } from 'react';
import { Icon } from '@/components/ui/icon';
import { Name } from '@/components/ui/name';
import { useDisclosure } from '@/components/ui/unfold';
import { todosInWords, todosOfPlan } from './todos';
import { ToolTodos } from './tool-todos';

/** What the agent means to do, on one line with how far it has come; it unfolds to the list. */
export const PlanLine = memo(function PlanLine({ item }: { item: PlanItem }) {
  const { open, id, button } = useDisclosure();
  const plan = useMemo(() => todosOfPlan(item.entries), [item.entries]);
  return (
    <div className="my-1.5">
      <button
        type="button"
        {...button}
        className="-mx-1.5 flex w-[calc(100%+12px)] min-w-0 items-center gap-2 rounded px-1.5 py-[3px] text-left text-xs hover:bg-raised/70"
      >
        <Icon of={ListChecks} size={13} strokeWidth={1.75} className="shrink-0 text-ink-3" />
        <span className="shrink-0 text-ink-2">Plan</span>
        <span className="tabular min-w-0 flex-1 truncate text-ink-3">
          <Name text={todosInWords(plan)} />
        </span>
      </button>
      {open && (
        <div id={id} className="mt-1 mb-3 ml-[6px] space-y-2 border-l pl-[15px]">
          <ToolTodos todos={plan.todos} />
          {item.omitted !== undefined && (
            <p className="tabular text-2xs text-ink-3">… and {item.omitted.toLocaleString('en')} more are not shown.</p>
          )}
        </div>
      )}
    </div>
  );
});
