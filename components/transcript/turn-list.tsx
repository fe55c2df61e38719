'use client';

import type { Turn } from '@interlude/protocol/read-models';
import type { VirtualItem } from '@tanstack/react-virtual';
import { clsx } from 'clsx';
import type { ReactNode, Ref } from 'react';
import { Boundary } from '@/components/ui/boundary';
import { useClock } from '@/components/ui/clock';
import { dayInWords, isOtherDay } from '@/components/ui/day';
import { useTimeFormat } from '@/components/ui/time-format';
import { TurnArticle } from './turn-article';

/** The turns near the reader, at their places in the list. */
export function LaidOutTurns(props: {
  turns: readonly Turn[];
  rows: readonly VirtualItem[];
  /** The highlighted turn. */
  flashed: string | null;
  hasMore: boolean;
  boxRef: Ref<HTMLDivElement>;
  rowRef: Ref<HTMLDivElement>;
  /** Shown above the oldest turn. */
  top: ReactNode;
}) {
  const { turns, rows, flashed, hasMore, boxRef, rowRef, top } = props;
  return (
    <div ref={boxRef} className="relative mx-auto max-w-session">
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

/** The turns in the server's markup. */
export function ServerTurns({ turns, top }: { turns: readonly Turn[]; top: ReactNode }) {
  return (
    <div className="relative mx-auto max-w-session pt-12 pb-6">
      {top}
      {turns.map((turn, index) => (
        <div key={turn.id} className={pauseClass(turn, turns[index - 1])}>
          <TurnRow turn={turn} flash={false} />
        </div>
      ))}
    </div>
  );
}

/** One turn. If it fails to render, the others are unaffected. */
export function TurnRow({ turn, flash }: { turn: Turn; flash: boolean }) {
  return (
    <Boundary of={turn} fallback={<BrokenTurn turn={turn} />}>
      <TurnArticle turn={turn} flash={flash} />
    </Boundary>
  );
}

/** Keeps the turn's anchor for links. */
export function BrokenTurn({ turn }: { turn: Turn }) {
  return (
    <article
      id={`turn-${turn.id}`}
      aria-label="Turn that can’t be shown"
      tabIndex={-1}
      data-turn={turn.id}
      className="session-column py-3 text-ink-3 text-xs focus-quiet"
    >
      This turn can’t be shown.{' '}
      <button type="button" onClick={() => location.reload()} className="underline hover:text-ink">
        Reload
      </button>
    </article>
  );
}

/** A longer pause adds space above a turn. */
const PAUSE_MS = 6 * 3_600_000;
const PAUSE_PX = 20;

type Times = Pick<Turn, 'startedAt'>;

/**
 * Space above a turn in pixels. It depends only on the pause, which is equal in all time zones: nothing moves when the
 * browser adds the day.
 */
export function pauseHeight(turn: Times | undefined, before: Times | undefined): number {
  if (turn === undefined || before === undefined) return 0;
  return turn.startedAt - before.startedAt >= PAUSE_MS ? PAUSE_PX : 0;
}

function pauseClass(turn: Times, before: Times | undefined): string | undefined {
  return pauseHeight(turn, before) > 0 ? 'pt-5' : undefined;
}

/**
 * The day, above the first turn of each day. It uses the space between turns.
 *
 * @param before null above the first turn of the session, which shows its day unless that is today; undefined if it is
 * not loaded
 */
export function DayLine({ turn, before }: { turn: Times; before: Times | null | undefined }) {
  const format = useTimeFormat();
  const words = useClock((now) => {
    if (before === undefined || !isOtherDay(turn.startedAt, before?.startedAt ?? now)) return null;
    return format === null ? null : dayInWords(format, turn.startedAt, now);
  });
  if (words === null) return null;
  return (
    // biome-ignore lint/a11y/useSemanticElements: an hr can't contain text
    <div
      role="separator"
      aria-label={words}
      lang={format?.language}
      className={clsx(
        'pointer-events-none absolute right-4 left-2 flex h-4 items-center gap-3 whitespace-nowrap text-2xs sm:right-6 sm:left-[60px]',
        pauseHeight(turn, before ?? undefined) > 0 ? 'top-2' : '-top-1.5',
      )}
    >
      <span className="font-medium text-ink-2">{words}</span>
      <span className="h-px flex-1 bg-line" />
    </div>
  );
}
