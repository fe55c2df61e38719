'use client';

import { useVirtualizer, type VirtualItem } from '@tanstack/react-virtual';
import { clsx } from 'clsx';
import { useCallback, useEffect, useImperativeHandle, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { JumpProvider } from '@/components/ui/jump';
import { ParsedAtOnce } from '@/components/ui/markdown/use-parsed';
import { useHydrated } from '@/components/ui/now';
import type { TranscriptState } from '@/lib/projections/transcript';
import type { Turn } from '@/lib/protocol/read-models';
import { DayLine, pauseClass, pauseHeight } from './day-line';
import { FirstPaint, firstPaintOf, turnWeight } from './first-paint';
import { HoldTail } from './hold-tail';
import { WantedAnchor } from './item-anchor';
import { JumpToLatest } from './jump-to-latest';
import { LookupNotice } from './lookup-notice';
import type { Sought } from './transcript-store';
import { TranscriptTop } from './transcript-top';
import { TurnRow } from './turn-row';
import { isAnchor, useJumpTarget } from './use-jump-target';
import { usePaintedHeights } from './use-painted-heights';
import { useRowsInTurn } from './use-rows-in-turn';
import { countItemsAfter, TAIL_PX, useTail } from './use-tail';
import { type TurnMove, useTurnKeys } from './use-turn-keys';

/**
 * Before any of our code runs, the server's markup stands at its end already. It may have come hidden, to be shown when
 * the rest of the page is there; a box without a height can't be scrolled, so this waits until it has one.
 */
const START_AT_END = `/^#(turn|task|message|request)-/.test(location.hash)||(box=>new ResizeObserver((_,seen)=>{
if(box.clientHeight){box.scrollTop=box.scrollHeight;seen.disconnect()}
}).observe(box))(document.currentScript.previousElementSibling)`;

/** Fewer turns than this above the first visible one: time to load what is older. */
const LOAD_AHEAD = 10;
const TOP_PX = 48;

export interface TranscriptHandle {
  /**
   * Brings a turn, a task, a message or a request into view by its anchor, loading it first where need be, and marks it
   * for a moment. @returns false where the session has none
   */
  show: (anchor: string, options?: { focus?: boolean }) => Promise<boolean>;
  /** Gives it the focus, where it stands. */
  focus: () => void;
}

interface TranscriptProps {
  state: TranscriptState;
  nonce: string | undefined;
  /** Grows with every message the reader sends: they want to see it stand at the end. */
  sentCount?: number;
  loadOlder: () => Promise<boolean>;
  loadingOlder: boolean;
  olderError: Error | null;
  seek: (isThere: (state: TranscriptState) => boolean) => Promise<Sought>;
  handle?: React.Ref<TranscriptHandle>;
}

/**
 * The transcript: only what is near the reader is laid out, it follows its end while they are there, and nothing moves
 * under their eyes while they are not.
 */
export function Transcript({
  state,
  nonce,
  sentCount = 0,
  loadOlder,
  loadingOlder,
  olderError,
  seek,
  handle,
}: TranscriptProps) {
  const { turns } = state;
  const scroller = useRef<HTMLDivElement>(null);
  const hydrated = useHydrated();
  // Read through a reference, so that a turn that grows does not have ten thousand rows measured again.
  const newest = useRef(turns);
  newest.current = turns;
  const { leftAt, held, hold } = useTail(scroller, state.position);
  const heightOf = usePaintedHeights(scroller);
  const virtualizer = useVirtualizer<HTMLDivElement, HTMLDivElement>({
    count: turns.length,
    enabled: hydrated,
    getScrollElement: () => scroller.current,
    getItemKey: useCallback((index: number) => newest.current[index]?.id ?? index, []),
    estimateSize: useCallback((index: number) => rowHeight(newest.current, index, heightOf), [heightOf]),
    overscan: 4,
    paddingStart: TOP_PX,
    paddingEnd: 24,
    anchorTo: 'end',
    followOnAppend: true,
    scrollEndThreshold: held.current ? -1 : TAIL_PX,
    directDomUpdates: true,
    useFlushSync: false,
    initialOffset: () => turns.reduce((sum, _, index) => sum + rowHeight(turns, index, heightOf), 0),
  });

  const { show, jump, step, flashed, wanted, lookup, closeLookup, follow } = useJumpTarget({
    turns,
    virtualizer,
    seek,
  });
  useImperativeHandle(handle, () => ({ show, focus: () => scroller.current?.focus({ preventScroll: true }) }), [show]);
  const latest = useCallback(() => virtualizer.scrollToEnd(), [virtualizer]);

  useEffect(() => {
    if (sentCount > 0) latest();
  }, [sentCount, latest]);

  // The page opens at its end, unless its address names a turn.
  const placed = useRef(false);
  useLayoutEffect(() => {
    if (!hydrated || placed.current) return;
    placed.current = true;
    if (!isAnchor(location.hash.slice(1))) virtualizer.scrollToEnd();
  }, [hydrated, virtualizer]);

  const firstPaint = useMemo(() => (hydrated ? null : firstPaintOf(turns)), [hydrated, turns]);
  const rows = useRowsInTurn(hydrated ? virtualizer.getVirtualItems() : NO_ROWS, virtualizer.range, (index) =>
    turnWeight(turns[index] as Turn),
  );
  const first = rows[0]?.index ?? LOAD_AHEAD;
  const [waitsForReader, setWaitsForReader] = useState(false);
  useEffect(() => setWaitsForReader(olderError !== null), [olderError]);
  useEffect(() => {
    if (hydrated && first < LOAD_AHEAD && state.hasMore && !loadingOlder && !waitsForReader) loadOlder();
  }, [hydrated, first, state.hasMore, loadingOlder, waitsForReader, loadOlder]);

  // A turn that takes another's place at the same index is no append, and its greater height would leave the end behind.
  useLayoutEffect(() => {
    if (turns.length > 0 && hydrated && leftAt === null && !held.current) virtualizer.scrollToEnd();
  }, [turns, hydrated, leftAt, held, virtualizer]);

  const cursor = useRef(-1);
  useTurnKeys((move) => {
    if (move === 'page-down' || move === 'page-up') {
      const box = scroller.current;
      box?.scrollBy({ top: (move === 'page-down' ? 0.9 : -0.9) * box.clientHeight });
      return;
    }
    const index = turnAfter(turns, move, cursor.current, virtualizer.range?.startIndex ?? 0);
    cursor.current = index ?? -1;
    if (move === 'latest') latest();
    else if (index !== null) step(`turn-${turns[index]?.id}`);
  });
  useEffect(() => {
    const box = scroller.current;
    const forget = () => {
      cursor.current = -1;
    };
    box?.addEventListener('wheel', forget, { passive: true });
    return () => box?.removeEventListener('wheel', forget);
  }, []);

  const top = (
    <TranscriptTop
      empty={turns.length === 0}
      hasMore={state.hasMore || (firstPaint !== null && firstPaint.turns.length < turns.length)}
      loading={loadingOlder}
      error={olderError}
      retry={loadOlder}
    />
  );
  return (
    <JumpProvider jump={jump}>
      <HoldTail value={hold}>
        <WantedAnchor value={wanted}>
          <div className="relative min-h-0 flex-1">
            <div
              ref={scroller}
              role="log"
              aria-label="Transcript"
              // While the reader is elsewhere in it, rows that come and go with scrolling are no news.
              aria-live={leftAt === null ? 'polite' : 'off'}
              // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
              tabIndex={0}
              className="h-full overflow-y-auto overscroll-contain -outline-offset-2 [overflow-anchor:none]"
            >
              {/* Around both: were the first element another one then, the box would be empty for a moment and lose its place. */}
              <FirstPaint value={firstPaint}>
                <ParsedAtOnce value={firstPaint?.parsed ?? null}>
                  {firstPaint === null ? (
                    <div ref={virtualizer.containerRef} className="relative mx-auto max-w-[960px]">
                      {top}
                      {rows.map((row) => (
                        <div
                          key={row.key}
                          data-index={row.index}
                          ref={virtualizer.measureElement}
                          className={clsx(
                            'absolute inset-x-0 top-0',
                            pauseClass(turns[row.index] as Turn, turns[row.index - 1]),
                          )}
                        >
                          <DayLine
                            turn={turns[row.index] as Turn}
                            before={row.index === 0 && !state.hasMore ? null : turns[row.index - 1]}
                          />
                          <TurnRow turn={turns[row.index] as Turn} flash={flashed === turns[row.index]?.id} />
                        </div>
                      ))}
                    </div>
                  ) : (
                    <div className="relative mx-auto max-w-[960px] pt-12 pb-6">
                      {top}
                      {firstPaint.turns.map((turn, at) => (
                        <div key={turn.id} className={pauseClass(turn, firstPaint.turns[at - 1])}>
                          <TurnRow turn={turn} flash={false} />
                        </div>
                      ))}
                    </div>
                  )}
                </ParsedAtOnce>
              </FirstPaint>
            </div>
            {!hydrated && (
              <script nonce={nonce} suppressHydrationWarning>
                {START_AT_END}
              </script>
            )}
            <LookupNotice lookup={lookup} turnCount={turns.length} onRetry={follow} onClose={closeLookup} />
            {leftAt !== null && <JumpToLatest count={countItemsAfter(turns, leftAt, state.position)} onJump={latest} />}
          </div>
        </WantedAnchor>
      </HoldTail>
    </JumpProvider>
  );
}

/** A turn's, as far as it is known, with the room before it. */
function rowHeight(turns: readonly Turn[], index: number, heightOf: (turn: Turn) => number): number {
  const turn = turns[index] as Turn;
  return heightOf(turn) + pauseHeight(turn, turns[index - 1]);
}

const NO_ROWS: readonly VirtualItem[] = [];

/** Where a key leads, from the turn it led to last, else from the topmost visible one. */
function turnAfter(
  turns: readonly Turn[],
  move: Exclude<TurnMove, 'page-down' | 'page-up'>,
  cursor: number,
  visible: number,
): number | null {
  const from = cursor >= 0 ? cursor : visible;
  const woken = (turn: Turn) => turn.kind === 'between-run';
  switch (move) {
    case 'next':
      return Math.min(turns.length - 1, from + 1);
    case 'previous':
      return Math.max(0, cursor >= 0 ? from - 1 : from);
    case 'next-woken':
      return indexOrNull(turns.findIndex((turn, at) => at > from && woken(turn)));
    case 'previous-woken':
      return indexOrNull(turns.findLastIndex((turn, at) => at < from && woken(turn)));
    case 'first':
      return turns.length > 0 ? 0 : null;
    case 'latest':
      return null;
  }
}

function indexOrNull(index: number): number | null {
  return index < 0 ? null : index;
}
