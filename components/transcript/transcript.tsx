'use client';

import type { TranscriptState } from '@interlude/protocol/projections/transcript';
import { countRedacted } from '@interlude/protocol/projections/transcript';
import type { RemovedHistory, Turn } from '@interlude/protocol/read-models';
import { ArrowDown } from 'lucide';
import { memo, useCallback, useEffect, useImperativeHandle, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { useHydrated } from '@/components/ui/clock';
import { CalendarDay } from '@/components/ui/day';
import { plural } from '@/components/ui/duration';
import { Icon } from '@/components/ui/icon';
import { OVERLAY } from '@/components/ui/in-view';
import { addressAnchor, type Jump, JumpProvider } from '@/components/ui/jump';
import { keepHighlighted } from '@/components/ui/markdown/code-block';
import { HighlightedAtOnce } from '@/components/ui/markdown/highlight-at-once';
import { ParsedAtOnce } from '@/components/ui/markdown/markdown';
import type { RowVirtualizer } from '@/components/ui/row-window';
import { HoldTail } from '@/components/ui/unfold';
import { FirstPaint, type FirstPaintPart, firstPaintOf } from './first-paint';
import { TargetAnchor } from './item-rows';
import { LookupNotice } from './lookup-notice';
import { isAnchor, type ServerMarkup } from './server-markup';
import type { SeekResult } from './transcript-store';
import { LaidOutTurns, ServerTurns } from './turn-list';
import { useJumpTarget, useTurnWalk } from './use-jump-target';
import { countItemsAfter, useTail } from './use-tail';
import { useRemoval, useTurnRows } from './use-turn-rows';

/**
 * Scrolls the server's markup to its end before our code runs. The box hides its turns until this script: a browser may
 * paint a page it has received in part, which would show old turns first. The markup may arrive hidden, and a box
 * without a height can't scroll, so this waits for one. `data-start` marks the box meanwhile: on a busy machine our code
 * may run before the first layout. Content that arrives below shrinks the box, so it scrolls again unless the reader has
 * scrolled up.
 */
export const START_AT_END = `(box=>{let top=0;
if(/^#(turn|task|message|request)-/.test(location.hash))return delete box.dataset.start;
box.dataset.start='end';
new ResizeObserver((_,seen)=>{
if(!box.isConnected||box.scrollTop<top-1&&box.scrollTop<box.scrollHeight-box.clientHeight-1)seen.disconnect();
else if(box.clientHeight){box.scrollTop=box.scrollHeight;top=box.scrollTop;delete box.dataset.start}
}).observe(box)})(document.currentScript.previousElementSibling)`;

const NO_CODE: FirstPaintPart['highlighted'] = new Map();

/** Loads older turns when fewer than this are above the first visible one. */
const LOAD_AHEAD = 10;

export interface TranscriptHandle {
  /**
   * Scrolls to a turn, task, message or request by its anchor, loading it if necessary, and highlights it briefly.
   * @returns false if the session has no such anchor
   */
  show: (anchor: string, options?: { focus?: boolean }) => Promise<boolean>;
  /** Like a link: also sets the URL. */
  jump: Jump;
  /** Focuses the transcript without scrolling. */
  focus: () => void;
}

interface TranscriptProps {
  state: TranscriptState;
  nonce: string | undefined;
  /** Number of messages the reader has sent. Each increment scrolls to the end. */
  sentCount?: number;
  loadOlder: () => Promise<boolean>;
  loadingOlder: boolean;
  olderError: Error | null;
  seek: (isThere: (state: TranscriptState) => boolean) => Promise<SeekResult>;
  handle?: React.Ref<TranscriptHandle>;
  /** The server's markup that this component replaces. */
  painted?: ServerMarkup | null;
}

/**
 * The transcript. Only turns near the reader are laid out. It follows its end while the reader is there, and nothing
 * moves while they are elsewhere.
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
  useState(() => painted !== null && keepHighlighted(painted.codes));
  const { leftAt, held, hold } = useTail(scroller, state.position, painted?.isLeft ?? false);
  const { virtualizer, rows } = useTurnRows({ turns, scroller, painted, held, follows: leftAt === null && !held });
  useRemoval({ virtualizer, turns, removedUpTo: state.removed?.upTo });

  const { show, jump, step, toFirst, flashed, wanted, lookup, closeLookup, follow } = useJumpTarget({
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
  // After a failure the reader has to retry.
  const mayLoad = state.hasMore && !loadingOlder && olderError === null;
  useEffect(() => {
    if (first < LOAD_AHEAD && mayLoad) loadOlder();
  }, [first, mayLoad, loadOlder]);

  useTurnWalk({
    scroller,
    turns,
    firstVisible: () => virtualizer.range?.startIndex ?? 0,
    onTurn: step,
    onFirst: toFirst,
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
        <TargetAnchor value={wanted}>
          <div className="relative min-h-0 flex-1">
            <div
              ref={scroller}
              role="log"
              aria-label="Transcript"
              data-start={onServer ? 'parsing' : undefined}
              // Rows that scroll into view are not announced.
              aria-live={leftAt === null ? 'polite' : 'off'}
              // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable box must be reachable by keyboard
              tabIndex={0}
              className="h-full overflow-y-auto overflow-x-hidden overscroll-contain -outline-offset-2 [overflow-anchor:none] data-[start=parsing]:*:hidden"
            >
              <FirstPaint value={firstPaint}>
                <ParsedAtOnce value={firstPaint?.parsed ?? null}>
                  <HighlightedAtOnce value={firstPaint?.highlighted ?? NO_CODE}>
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
                      <ServerTurns turns={firstPaint.turns} top={top} />
                    )}
                  </HighlightedAtOnce>
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
        </TargetAnchor>
      </HoldTail>
    </JumpProvider>
  );
}

/**
 * Opens the transcript at its end unless the URL names an anchor, and scrolls there for each message sent. @returns a
 * function that scrolls to the end
 */
function useEnd(options: { virtualizer: RowVirtualizer; sentCount: number; painted: ServerMarkup | null }): () => void {
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

/** A button that scrolls to the end, with the number of items that arrived since the reader left it. */
function JumpToLatest({ count, onJump }: { count: number; onJump: () => void }) {
  return (
    <button
      type="button"
      onClick={onJump}
      className="-translate-x-1/2 absolute bottom-4 left-1/2 flex items-center gap-1.5 whitespace-nowrap rounded-full bg-ink px-3 py-1 text-ground text-xs shadow-lg hover:bg-ink-2"
    >
      <Icon of={ArrowDown} size={13} />
      <span className="tabular">{count > 0 ? `${count} new` : 'Jump to latest'}</span>
      {count > 0 && <span className="sr-only">, jump to latest</span>}
    </button>
  );
}

/** Number of removed turns, and the day of the last removal in the reader's time zone. */
function RemovedTurns({ removed: { turns, at } }: { removed: RemovedHistory }) {
  const isDayKnown = useHydrated();
  // Items outside turns aren't counted, so `turns` may be 0.
  return (
    <>
      {turns === 0 ? 'Older entries were' : plural(turns, 'older turn was', 'older turns were')} removed
      {isDayKnown && (
        <>
          {turns === 1 ? ' on ' : ' on or before '}
          <CalendarDay at={at} />
        </>
      )}
    </>
  );
}

/** Number of redacted secrets in the loaded turns. Overlays the transcript, so that nothing moves. */
export const RedactedNote = memo(function RedactedNote({ turns }: { turns: readonly Turn[] }) {
  const count = countRedacted(turns);
  return (
    <p
      {...OVERLAY}
      role="status"
      aria-label="Secrets"
      className="pointer-events-none absolute top-1 right-4 z-[5] rounded bg-ground px-1.5 text-2xs text-ink-3 empty:hidden"
    >
      {count > 0 && `${plural(count, 'secret')} removed`}
    </p>
  );
});

const EMPTY = 'No turns yet. The first appears here when the agent starts working.';

export function TranscriptTop(props: {
  hasMore: boolean;
  empty: boolean;
  removed: RemovedHistory | undefined;
  loading: boolean;
  error: Error | null;
  retry: () => Promise<boolean>;
}) {
  const { hasMore, empty, removed, loading, error, retry } = props;
  const isComplete = error === null && !hasMore && !loading;
  return (
    <p className="session-column tabular absolute inset-x-0 top-0 flex h-12 items-center gap-2 text-2xs text-ink-3">
      {error !== null && (
        <>
          <span className="truncate">{error.message}</span>
          <button type="button" onClick={() => retry()} className="shrink-0 underline hover:text-ink">
            Try again
          </button>
        </>
      )}
      {error === null && !isComplete && 'Loading older turns…'}
      {isComplete && removed === undefined && (empty ? EMPTY : 'Beginning of the session')}
      {isComplete && removed !== undefined && (
        <span>
          <RemovedTurns removed={removed} />
          {empty && '. New turns appear here.'}
        </span>
      )}
    </p>
  );
}
