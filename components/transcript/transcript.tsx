'use client';

import type { TranscriptState } from '@interlude/protocol/projections/transcript';
import { useCallback, useEffect, useImperativeHandle, useLayoutEffect, useMemo, useRef } from 'react';
import { addressAnchor } from '@/components/ui/address-anchor';
import { type Jump, JumpProvider } from '@/components/ui/jump';
import { ParsedAtOnce } from '@/components/ui/markdown/use-parsed';
import { useHydrated } from '@/components/ui/now';
import type { RowVirtualizer } from '@/components/ui/row-window';
import { HoldTail } from '@/components/ui/unfold';
import { FirstPaint, firstPaintOf } from './first-paint';
import { WantedAnchor } from './item-anchor';
import { JumpToLatest } from './jump-to-latest';
import { LookupNotice } from './lookup-notice';
import type { Painted } from './painted';
import { RedactedNote } from './redacted-note';
import type { Sought } from './transcript-store';
import { TranscriptTop } from './transcript-top';
import { LaidOutTurns, PaintedTurns } from './turn-list';
import { isAnchor, useJumpTarget } from './use-jump-target';
import { useRemoval } from './use-removal';
import { countItemsAfter, useTail } from './use-tail';
import { useTurnRows } from './use-turn-rows';
import { useTurnWalk } from './use-turn-walk';

/**
 * Before any of our code runs, the server's markup stands at its end already. It may have come hidden, to be shown when
 * the rest of the page is there; a box without a height can't be scrolled, so this waits until it has one. Until then the
 * box says that it does: on a busy machine our code may come before the first layout.
 */
const START_AT_END = `/^#(turn|task|message|request)-/.test(location.hash)||(box=>{box.dataset.start='end';
new ResizeObserver((_,seen)=>{
if(box.clientHeight){box.scrollTop=box.scrollHeight;delete box.dataset.start;seen.disconnect()}
}).observe(box)})(document.currentScript.previousElementSibling)`;

/** Fewer turns than this above the first visible one: time to load what is older. */
const LOAD_AHEAD = 10;

export interface TranscriptHandle {
  /**
   * Brings a turn, a task, a message or a request into view by its anchor, loading it first where need be, and marks it
   * for a moment. @returns false if the session has none
   */
  show: (anchor: string, options?: { focus?: boolean }) => Promise<boolean>;
  /** The same as a link does: the address names it then. */
  jump: Jump;
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
  /** The server's markup of it, which it replaces. */
  painted?: Painted | null;
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
  painted = null,
}: TranscriptProps) {
  const { turns } = state;
  const scroller = useRef<HTMLDivElement>(null);
  const onServer = !useHydrated();
  const { leftAt, held, hold } = useTail(scroller, state.position, painted?.isLeft ?? false);
  const { virtualizer, rows } = useTurnRows({ turns, scroller, painted, held, follows: leftAt === null && !held });
  useRemoval({ virtualizer, turns, removedUpTo: state.removed?.upTo });

  const { show, jump, step, flashed, wanted, lookup, closeLookup, follow } = useJumpTarget({
    turns,
    virtualizer,
    seek,
  });
  useImperativeHandle(handle, () => ({ show, jump, focus: () => scroller.current?.focus({ preventScroll: true }) }), [
    show,
    jump,
  ]);
  const latest = useEnd({ virtualizer, sentCount, painted });

  const firstPaint = useMemo(() => (onServer ? firstPaintOf(turns) : null), [onServer, turns]);
  const first = rows[0]?.index ?? LOAD_AHEAD;
  // After a failure it waits for the reader to ask again.
  const mayLoad = state.hasMore && !loadingOlder && olderError === null;
  useEffect(() => {
    if (first < LOAD_AHEAD && mayLoad) loadOlder();
  }, [first, mayLoad, loadOlder]);

  useTurnWalk({
    scroller,
    turns,
    firstVisible: () => virtualizer.range?.startIndex ?? 0,
    onTurn: step,
    onLatest: latest,
  });

  const top = (
    <TranscriptTop
      empty={turns.length === 0}
      hasMore={state.hasMore || (firstPaint !== null && firstPaint.turns.length < turns.length)}
      removed={state.removed}
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
              <FirstPaint value={firstPaint}>
                <ParsedAtOnce value={firstPaint?.parsed ?? null}>
                  {firstPaint === null ? (
                    <LaidOutTurns
                      turns={turns}
                      rows={rows}
                      flashed={flashed}
                      hasMore={state.hasMore}
                      boxRef={virtualizer.containerRef}
                      rowRef={virtualizer.measureElement}
                      top={top}
                    />
                  ) : (
                    <PaintedTurns turns={firstPaint.turns} top={top} />
                  )}
                </ParsedAtOnce>
              </FirstPaint>
            </div>
            {onServer && (
              <script nonce={nonce} suppressHydrationWarning>
                {START_AT_END}
              </script>
            )}
            {state.redacts && <RedactedNote turns={turns} />}
            <LookupNotice
              lookup={lookup}
              turnCount={turns.length}
              isCut={state.removed !== undefined}
              onRetry={follow}
              onClose={closeLookup}
            />
            {leftAt !== null && <JumpToLatest count={countItemsAfter(turns, leftAt, state.position)} onJump={latest} />}
          </div>
        </WantedAnchor>
      </HoldTail>
    </JumpProvider>
  );
}

/**
 * The transcript opens at its end, unless its address names something in it, and goes there with each message that is
 * sent and, while the reader is there, with all that comes. @returns leads there
 */
function useEnd(options: { virtualizer: RowVirtualizer; sentCount: number; painted: Painted | null }): () => void {
  const { virtualizer, sentCount, painted } = options;
  const placed = useRef(false);
  const latest = useCallback(() => virtualizer.scrollToEnd(), [virtualizer]);
  useEffect(() => {
    if (sentCount > 0) latest();
  }, [sentCount, latest]);
  useLayoutEffect(() => {
    if (placed.current) return;
    placed.current = true;
    if (painted?.hasFocus) virtualizer.scrollElement?.focus({ preventScroll: true });
    if (!painted?.isLeft && !isAnchor(addressAnchor())) latest();
  }, [virtualizer, latest, painted]);
  return latest;
}
