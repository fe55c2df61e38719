'use client';

import { comparePositions } from '@interlude/protocol/position';
import type { Task } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { useMemo, useRef, useState } from 'react';
import { Glyph } from '@/components/ui/glyph';
import { HeldChanges } from '@/components/ui/held-changes';
import { useHeldOrder } from '@/components/ui/held-order';
import { JumpLink } from '@/components/ui/jump';
import { useLiveness } from '@/components/ui/liveness';
import { Words } from '@/components/ui/name';
import { TaskOutcome } from './task-outcome';
import { taskAnchor, taskFont } from './task-words';

/** Tasks listed at first; further ones are added per press. */
const SHOWN = 60;

/**
 * A session's tasks: running ones first, then the newest. The order is kept while the reader uses the list.
 *
 * @param omitted number of tasks that the server does not list
 * @param isWide true for the list in its own tab
 */
export function TaskPanel(props: { tasks: readonly Task[]; omitted?: number; isWide?: boolean }) {
  const { tasks, omitted = 0, isWide = false } = props;
  const box = useRef<HTMLElement>(null);
  const places = useMemo(() => [{ name: 'tasks', ids: orderTasks(tasks).map(({ position }) => position) }], [tasks]);
  const { order, moved, added, release } = useHeldOrder(box, places);
  const byPlace = useMemo(() => new Map(tasks.map((task) => [task.position, task])), [tasks]);
  const ordered = order.flatMap(({ ids }) => ids).flatMap((place) => byPlace.get(place) ?? []);
  const [max, setMax] = useState(SHOWN);
  const { stopped } = useLiveness();
  const column = isWide ? 'session-column w-full' : 'px-5';
  const running = tasks.filter((task) => task.status === 'running').length;
  const total = (tasks.length + omitted).toLocaleString('en');
  return (
    <aside ref={box} aria-label="Tasks" className="flex min-h-0 flex-1 flex-col">
      <h2 className={clsx('flex items-baseline gap-1.5 pt-4 pb-1.5 text-2xs text-ink-3', column)}>
        <span className="font-medium text-ink-2">Tasks</span>
        <span className="tabular">
          {running > 0 ? `${running} of ${total} ${stopped === null ? 'running' : 'no signal'}` : total}
        </span>
        <HeldChanges moved={moved} added={added} onShow={release} className="ml-auto" />
      </h2>
      {tasks.length === 0 && (
        <p className={clsx('py-1 text-ink-3', column)}>
          No tasks yet. Commands and subagents that the agent runs in the background appear here.
        </p>
      )}
      <ul className="min-h-0 flex-1 overflow-y-auto pb-6">
        {ordered.slice(0, max).map((task) => (
          <li key={task.position}>
            <JumpLink
              anchor={taskAnchor(task)}
              className={clsx(
                'grid grid-cols-[12px_minmax(0,1fr)] items-baseline gap-x-2.5 py-1.5 pointer-coarse:py-3 -outline-offset-2 hover:bg-raised/60',
                column,
                isWide && 'sm:grid-cols-[12px_minmax(0,1fr)_200px]',
              )}
            >
              <Glyph name={task.status} className="relative top-[1.5px]" />
              <span dir="auto" className={clsx('truncate', taskFont(task))}>
                <Words text={task.description} />
              </span>
              <TaskOutcome task={task} className={clsx('col-start-2', isWide && 'sm:col-start-3')} />
            </JumpLink>
          </li>
        ))}
        {ordered.length > max && (
          <li className={clsx('py-2', column)}>
            <button
              type="button"
              onClick={() => setMax(max + SHOWN * 4)}
              className="text-ink-3 text-xs underline hover:text-ink"
            >
              Show older tasks ({ordered.length.toLocaleString('en')} in total)
            </button>
          </li>
        )}
        {omitted > 0 && ordered.length <= max && (
          <li className={clsx('tabular py-2 text-ink-3 text-xs', column)}>
            … and {omitted.toLocaleString('en')} more not listed.
          </li>
        )}
      </ul>
    </aside>
  );
}

export function orderTasks(tasks: readonly Task[]): Task[] {
  const running = (task: Task) => (task.status === 'running' ? 1 : 0);
  return [...tasks].sort((a, b) => running(b) - running(a) || comparePositions(b.position, a.position));
}
