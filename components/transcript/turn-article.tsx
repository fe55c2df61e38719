'use client';

import type { TaskItem, Turn } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { memo, useCallback, useMemo } from 'react';
import { TimeOfDay } from '@/components/ui/clock';
import { ShowInLog, useIsHeld } from '@/components/ui/time-lock';
import { nameText } from '@/components/ui/verbatim';
import { ItemList } from './item-list';
import { useTranscriptSlots } from './transcript-slots';
import { turnName } from './turn-cause';
import { TurnFooter } from './turn-footer';
import { TurnHeader } from './turn-header';
import { turnTitle } from './turn-title';

/** The line down the left of the transcript: plain where people asked, in the accent where the agent woke by itself. */
const SPINE: Record<Turn['kind'], string> = {
  user: 'border-line',
  'between-run': 'border-accent',
  none: 'border-line border-dashed',
};

export const TurnArticle = memo(function TurnArticle({ turn, flash }: { turn: Turn; flash: boolean }) {
  const slots = useTranscriptSlots();
  const taskIds = turn.trigger?.taskIds;
  const triggered = useMemo(() => new Set(taskIds), [taskIds]);
  // The header of a woken turn says how its tasks ended; said again below it would only be longer.
  const renderTask = useCallback(
    (item: TaskItem, call: React.ReactNode) => {
      if (item.phase !== 'started' && triggered.has(item.id)) {
        const task = slots.findTask(item);
        if (task !== null && slots.hasCard(task)) return null;
      }
      return slots.renderTask(item, call);
    },
    [slots, triggered],
  );
  const held = useIsHeld(`turn-${turn.id}`);
  const startedBy = useCallback((item: TaskItem) => slots.findTask(item)?.toolCallId ?? null, [slots]);

  return (
    <article
      id={`turn-${turn.id}`}
      aria-label={nameText(turnName(turn, slots))}
      tabIndex={-1}
      data-turn={turn.id}
      className={clsx(
        'group/turn grid scroll-mt-4 grid-cols-[minmax(0,1fr)] outline-none sm:grid-cols-[60px_minmax(0,1fr)]',
        flash && 'animate-flash',
        held && 'shadow-[inset_2px_0_var(--ink-2)]',
      )}
    >
      <TimeOfDay
        at={turn.startedAt}
        className={clsx(
          'hidden pt-3 pr-3 text-right text-2xs leading-[18px]! sm:col-start-1 sm:row-start-1 sm:block',
          held ? 'text-ink' : 'text-ink-3',
        )}
      />
      <div
        className={clsx(
          'mt-3 mb-2 ml-2 min-w-0 border-l-2 pr-4 pl-3 sm:col-start-2 sm:row-start-1 sm:ml-0 sm:pr-6 sm:pl-6',
          SPINE[turn.kind],
        )}
      >
        {(turn.kind === 'between-run' || turn.trigger?.kind === 'timer') && <TurnHeader turn={turn} />}
        {turn.kind === 'user' && <h2 className="sr-only">User turn</h2>}
        {turn.kind === 'none' && <h2 className="sr-only">Outside any turn</h2>}
        {turn.omitted !== undefined && turn.omitted > 0 && (
          <p className="tabular my-2 text-ink-3 text-xs">
            … {turn.omitted.toLocaleString('en')} earlier ones are not shown: a page holds the newest of a turn.
          </p>
        )}
        <ItemList
          items={turn.items}
          endedAt={turn.endedAt}
          queued={turn.kind === 'none'}
          renderTask={renderTask}
          renderRequest={slots.renderRequest}
          startedBy={startedBy}
        />
        <TurnFooter turn={turn} />
      </div>
      {/* Below the time, but behind what the turn says: whoever goes through it by keys wants that first. */}
      <ShowInLog
        anchor={`turn-${turn.id}`}
        name={turnTitle(turn, slots)}
        className={clsx(
          'mt-[34px] mr-3 self-start justify-self-end max-sm:hidden sm:col-start-1 sm:row-start-1',
          !held && 'pointer-coarse:opacity-100 opacity-0 focus-visible:opacity-100 group-hover/turn:opacity-100',
        )}
      />
    </article>
  );
});
