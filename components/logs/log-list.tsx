'use client';

import type { Position } from '@interlude/protocol/position';
import type { LogFilter } from '@interlude/protocol/projections/log-filter';
import type { LogLine } from '@interlude/protocol/read-models';
import { ArrowDown } from 'lucide';
import {
  type ClipboardEvent,
  type Ref,
  type RefObject,
  useEffect,
  useEffectEvent,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
  useSyncExternalStore,
} from 'react';
import { plural } from '@/components/ui/duration';
import { Icon } from '@/components/ui/icon';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { useFollow } from '@/components/ui/row-window';
import { LineSearch } from './line-search';
import { isOtherLogDay, LogDay } from './log-day';
import { plainLine } from './log-format';
import { LogRow, MarkerRow } from './log-row';
import type { LogSettings } from './log-settings';
import { type LogStore, useLogStore } from './log-store';
import type { LogWindow, MissingRow as Missing } from './log-window';
import { type LogHandle, useLogHandle } from './use-log-handle';
import { BOTTOM_PX, type LogRows, linePx, useLogRows } from './use-log-rows';

/** Span of time by the runner's clock. */
export interface LogSpan {
  from: number;
  to: number;
}

interface LogListProps {
  ref: Ref<LogHandle>;
  store: LogStore;
  /** Heights of lines in the server's markup, in pixels. */
  painted: ReadonlyMap<Position, number>;
  settings: LogSettings;
  follows: boolean;
  onFollow: (follows: boolean) => void;
  search: LogFilter | null;
  span: LogSpan | null;
  /** Hits among other lines, to mark beside the scrollbar; null for none. */
  hits: LogStore | null;
  /** Leads to a line. */
  onMark: (position: Position) => void;
  target: Position | null;
  cursor: Position | null;
  unfolded: ReadonlySet<Position>;
  onLine: (line: LogLine) => void;
  onUnfold: (line: LogLine) => void;
  onContext: ((line: LogLine) => void) | null;
  hasLinks: boolean;
}

export const SCROLLER =
  '@container min-h-0 flex-1 overflow-y-auto overflow-x-hidden overscroll-contain -outline-offset-2 [overflow-anchor:none]';

const marksCode = new CodeOnDemand(async () => (await import('./log-marks')).LogMarks);

/** The lines of a log. Only lines near the reader are laid out, and nothing moves while they read. */
export function LogList(props: LogListProps) {
  const {
    ref,
    store,
    painted,
    settings,
    follows,
    onFollow,
    search,
    hits,
    onMark,
    span,
    target,
    cursor,
    unfolded,
    onLine,
    onUnfold,
    onContext,
    hasLinks,
  } = props;
  const version = useSyncExternalStore(store.subscribe, store.version, () => 0);
  const scroller = useRef<HTMLDivElement>(null);
  const { window } = store;
  const rows = useLogRows({ store, version, painted, scroller, follows, wraps: settings.wraps });
  const { items, begin } = rows;
  const fill = useLogFill({ store, version, rows, scroller, follows });
  useLogHandle(ref, { store, version, rows, scroller, follows, onFollow });
  useFollow(scroller, onFollow);
  const lineSearch = useMemo(
    () => (search === null ? null : new LineSearch(search, settings.dims)),
    [search, settings.dims],
  );

  const top = window.lineAt(rows.topRow);
  const isLonger = rows.heightPx > rows.boxPx;

  // Lines far from the reader are evicted.
  useEffect(() => {
    store.readAt(follows ? null : window.numberAt(begin + (items[0]?.index ?? 0)));
  });

  return (
    <div className="relative flex min-h-0 flex-1 flex-col">
      <div
        ref={scroller}
        role="log"
        aria-label="Agent log"
        // A running log is not read aloud.
        aria-live="off"
        onCopy={(event) => copyLines(event, window)}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable box must be reachable by keyboard
        tabIndex={0}
        className={SCROLLER}
      >
        <div style={{ height: rows.heightPx }} className="relative">
          <LogTop store={store} />
          {/* The padding belongs to the rows: a row that measures taller than estimated scrolls into it before the box grows. */}
          <div style={{ top: items[0]?.start, paddingBottom: BOTTOM_PX }} className="absolute inset-x-0">
            {items.map(({ key, index }) => {
              const row = window.rowAt(begin + index);
              if (row === null) return null;
              return (
                <div key={key} ref={rows.measure} data-index={index} data-row={begin + index}>
                  {row.kind === 'line' && startsDay(row.line, window.lineAt(begin + index - 1), settings.isUtc) && (
                    <LogDay at={row.line.occurredAt} isUtc={settings.isUtc} />
                  )}
                  {row.kind !== 'line' ? (
                    <MissingRow row={row} isLoading={store.isLoading(row.gap)} onFill={() => fill(begin + index)} />
                  ) : row.line.marker ? (
                    <MarkerRow
                      line={{ ...row.line, marker: row.line.marker }}
                      style={settings}
                      isTarget={row.line.position === target}
                    />
                  ) : (
                    <LogRow
                      line={row.line}
                      list={scroller}
                      settings={settings}
                      search={lineSearch}
                      isCursor={row.line.position === cursor}
                      isTarget={row.line.position === target}
                      isInSpan={span !== null && row.line.occurredAt >= span.from && row.line.occurredAt <= span.to}
                      isUnfolded={unfolded.has(row.line.position)}
                      onLine={onLine}
                      onUnfold={onUnfold}
                      onContext={onContext}
                      hasLinks={hasLinks}
                    />
                  )}
                </div>
              );
            })}
          </div>
          {isLonger && (
            <div className="absolute inset-y-0 right-0">
              <OnDemand code={marksCode} name="Marks of errors" props={{ store, hits, rows, onMark }} />
            </div>
          )}
        </div>
      </div>
      {top !== null && <LogDay at={top.occurredAt} isUtc={settings.isUtc} isOver />}
      {!follows && isLonger && (
        <NewLines
          store={store}
          onEnd={() => {
            onFollow(true);
            rows.scrollToEnd();
          }}
        />
      )}
    </div>
  );
}

/** True for the first line of a day, if the line before it is loaded. */
function startsDay(line: LogLine, before: LogLine | null, isUtc: boolean): boolean {
  return before !== null && isOtherLogDay(line.occurredAt, before.occurredAt, isUtc);
}

function LogTop({ store: { window, position } }: { store: LogStore }) {
  if (position === null || (window.older === null && window.rowCount === 0)) return null;
  return (
    <p className="absolute inset-x-0 top-0 flex h-8 items-center px-3 text-2xs text-ink-3 sm:px-4">
      {window.older === null ? 'Beginning of the log' : 'Loading older lines…'}
    </p>
  );
}

/**
 * Copies a selection of several lines in the format of the runner's log file. A selection within one line is copied as
 * it is.
 */
function copyLines(event: ClipboardEvent<HTMLElement>, window: LogWindow): void {
  const selection = document.getSelection();
  if (selection === null || selection.isCollapsed) return;
  const rows = [...event.currentTarget.querySelectorAll<HTMLElement>('[data-line]')].filter((row) =>
    selection.containsNode(row, true),
  );
  if (rows.length < 2) return;
  const lines = rows
    .map((row) => window.lineAt(window.indexOf(row.dataset.line ?? '')))
    .filter((line) => line !== null)
    .sort((a, b) => a.line - b.line);
  event.clipboardData.setData('text/plain', lines.map(plainLine).join('\n'));
  event.preventDefault();
}

/** A button that scrolls to the end, with the number of lines that arrived since the reader left it. */
function NewLines({ store, onEnd }: { store: LogStore; onEnd: () => void }) {
  const [leftAt] = useState(store.liveCount);
  const count = (useLogStore(store, ({ liveCount }) => liveCount) ?? leftAt) - leftAt;
  return (
    <button
      type="button"
      onClick={onEnd}
      className="-translate-x-1/2 absolute bottom-3 left-1/2 flex items-center gap-1.5 rounded-full bg-ink px-3 py-1 text-ground text-xs shadow-lg hover:bg-ink-2"
    >
      <Icon of={ArrowDown} size={13} />
      <span className="tabular">{count > 0 ? plural(count, 'new line') : 'Jump to the end'}</span>
    </button>
  );
}

/** A known line that is being fetched, or an unknown number of lines that load on scroll or click. */
function MissingRow({ row, isLoading, onFill }: { row: Missing; isLoading: boolean; onFill: () => void }) {
  if (row.kind === 'missing') {
    return (
      <div aria-hidden="true" className="flex h-(--log-line) items-center px-3 sm:px-4">
        <span className="h-2 rounded-sm bg-raised" style={{ width: `${20 + ((row.line * 37) % 50)}%` }} />
      </div>
    );
  }
  const words = row.gap.skipped ? 'Load skipped lines' : 'Load more lines';
  return (
    <div className="flex h-(--log-line) items-center gap-2 bg-sunken px-3 font-sans text-2xs sm:px-4">
      <span aria-hidden="true" className="h-px w-4 bg-line-strong" />
      <button
        type="button"
        disabled={isLoading}
        onClick={onFill}
        className="text-ink-2 underline decoration-line-strong underline-offset-2 hover:text-ink disabled:no-underline"
      >
        {isLoading ? 'Loading…' : words}
      </button>
      <span aria-hidden="true" className="h-px min-w-4 flex-1 bg-line-strong" />
    </div>
  );
}

/** Loads missing lines this many rows ahead. */
const AHEAD = 30;

/**
 * Loads missing lines near the reader, one page at a time. Lines that were skipped because the log outran the search
 * load only on a click, or loading would never end.
 *
 * @returns a function that loads the lines missing at a row
 */
function useLogFill(options: {
  store: LogStore;
  version: number;
  rows: LogRows;
  scroller: RefObject<HTMLDivElement | null>;
  follows: boolean;
}): (row: number) => void {
  const { store, version, rows, scroller, follows } = options;
  const { window } = store;
  const [firstRow, lastRow] = [rows.begin + (rows.items[0]?.index ?? 0), rows.begin + (rows.items.at(-1)?.index ?? 0)];

  // Lines loaded above the line being read push it down. This scrolls it back.
  const [held, hold] = useState<{ line: number; below: number } | null>(null);
  const bringBack = useEffectEvent(({ line, below }: { line: number; below: number }) =>
    rows.scrollToOffset(rows.startOf(window.indexOfNumber(line)) - below),
  );
  useLayoutEffect(() => {
    if (held !== null) bringBack(held);
  }, [held]);

  const fill = (index: number) => {
    const [row, below] = [window.rowAt(index), window.lineAt(index + 1)];
    if (row === null || row.kind === 'line') return;
    const { scrollTop = 0, clientHeight = 0 } = scroller.current ?? {};
    const start = rows.startOf(index);
    // The reader came from below: load the lines right before the one they read.
    const isFirstSeen = row.kind === 'more' && Math.abs(start - scrollTop) < linePx();
    const from = follows || start < scrollTop + clientHeight / 2 ? 'below' : 'above';
    const filled = store.fill(row, from);
    if (!follows && isFirstSeen && below !== null) {
      const next = rows.startOf(index + 1) - scrollTop;
      void filled.then(() => hold({ line: below.line, below: next }));
    }
  };

  const fillNear = useEffectEvent(() => {
    if (store.isLoading() || store.error !== null) return;
    // The reader may be about to leave the end. Loading now would stop the view from following the end.
    if (follows && lastRow < window.rowCount - 1) return;
    const seen = Array.from({ length: lastRow - firstRow + 1 }, (_, index) => firstRow + index);
    const ahead = Array.from({ length: AHEAD }, (_, index) => [firstRow - index - 1, lastRow + index + 1]).flat();
    const isWanted = (index: number) => {
      const row = window.rowAt(index);
      return row !== null && row.kind !== 'line' && !row.gap.skipped;
    };
    const wanted = [...seen, ...(follows ? [] : ahead)].find(isWanted);
    if (wanted !== undefined) fill(wanted);
    else if (window.older !== null && !follows && firstRow < AHEAD) void store.fillGap(window.older, 'below');
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs when rows or the view change
  useEffect(() => fillNear(), [store, version, firstRow, lastRow, follows]);

  return fill;
}
