'use client';

import type { ReasoningItem } from '@interlude/protocol/read-models';
import { formatDuration } from '@interlude/protocol/time';
import { clsx } from 'clsx';
import { ChevronRight } from 'lucide';
import { memo } from 'react';
import { RunningClock } from '@/components/ui/clock';
import { Icon } from '@/components/ui/icon';
import { Markdown } from '@/components/ui/markdown/markdown';
import { useDisclosure } from '@/components/ui/unfold';
import { CutLine } from './cut-line';

/** What the agent thought, folded. `until` is when the next thing happened. */
export const ReasoningLine = memo(function ReasoningLine({
  item,
  until,
}: {
  item: ReasoningItem;
  until: number | null;
}) {
  const { open, id, button } = useDisclosure();
  return (
    <div>
      <button
        type="button"
        {...button}
        className="-mx-1.5 flex items-center gap-2 rounded px-1.5 py-[3px] text-ink-3 text-xs hover:text-ink"
      >
        <Icon
          of={ChevronRight}
          size={13}
          aria-hidden="true"
          className={clsx('transition-transform', open && 'rotate-90')}
        />
        {item.streaming ? (
          <span className="tabular flex gap-1.5">
            Thinking <RunningClock since={item.at} />
          </span>
        ) : (
          <span className="tabular">
            Thought{until === null || until - item.at < 100 ? '' : ` for ${formatDuration(until - item.at)}`}
          </span>
        )}
      </button>
      {open && (
        <div id={id} className="mt-1 mb-3 ml-[6px] border-l pl-[15px] text-ink-2">
          <Markdown text={item.text} streaming={item.streaming} className="text-sm!" />
          <CutLine cut={item.cut} />
        </div>
      )}
    </div>
  );
});
