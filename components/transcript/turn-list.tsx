import type { Turn } from '@interlude/protocol/read-models';
import type { VirtualItem } from '@tanstack/react-virtual';
import { clsx } from 'clsx';
import type { ReactNode, Ref } from 'react';
import { DayLine, pauseClass } from './day-line';
import { TurnRow } from './turn-row';

/** The turns near the reader, each where the whole list has it. */
export function LaidOutTurns(props: {
  turns: readonly Turn[];
  rows: readonly VirtualItem[];
  /** The turn that is marked for a moment. */
  flashed: string | null;
  hasMore: boolean;
  boxRef: Ref<HTMLDivElement>;
  rowRef: Ref<HTMLDivElement>;
  /** What stands above the oldest. */
  top: ReactNode;
}) {
  const { turns, rows, flashed, hasMore, boxRef, rowRef, top } = props;
  return (
    <div ref={boxRef} className="relative mx-auto max-w-[960px]">
      {top}
      {rows.map(({ key, index }) => {
        const turn = turns[index] as Turn;
        const before = turns[index - 1];
        return (
          <div
            key={key}
            data-index={index}
            ref={rowRef}
            className={clsx('absolute inset-x-0 top-0', pauseClass(turn, before))}
          >
            <DayLine turn={turn} before={index === 0 && !hasMore ? null : before} />
            <TurnRow turn={turn} flash={flashed === turn.id} />
          </div>
        );
      })}
    </div>
  );
}

/** The turns that come with the page, before any of our code runs. */
export function PaintedTurns({ turns, top }: { turns: readonly Turn[]; top: ReactNode }) {
  return (
    <div className="relative mx-auto max-w-[960px] pt-12 pb-6">
      {top}
      {turns.map((turn, at) => (
        <div key={turn.id} className={pauseClass(turn, turns[at - 1])}>
          <TurnRow turn={turn} flash={false} />
        </div>
      ))}
    </div>
  );
}
