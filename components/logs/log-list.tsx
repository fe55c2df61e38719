'use client';

import type { Position } from '@interlude/protocol/position';
import type { LogFilter } from '@interlude/protocol/projections/log-filter';
import type { LogLine } from '@interlude/protocol/read-models';
import { type Ref, useEffect, useMemo, useRef, useSyncExternalStore } from 'react';
import { useFollow } from '@/components/ui/use-follow';
import { copyLines } from './copy-lines';
import { LineSearch } from './line-search';
import { LogRow } from './log-row';
import type { LogSettings } from './log-settings';
import type { LogStore } from './log-store';
import { BOTTOM_PX } from './log-stretch';
import { MarkerRow } from './marker-row';
import { MissingRow } from './missing-row';
import { NewLines } from './new-lines';
import { useLogFill } from './use-log-fill';
import { useLogRows } from './use-log-rows';
import { type LogReveal, useReveal } from './use-reveal';

/** A span of time, by the runner's clock. */
export interface LogSpan {
  from: number;
  to: number;
}

export interface LogListProps {
  ref: Ref<LogReveal>;
  store: LogStore;
  /** How high lines are in the server's markup, in pixels. */
  painted: ReadonlyMap<Position, number>;
  settings: LogSettings;
  follows: boolean;
  onFollow: (follows: boolean) => void;
  search: LogFilter | null;
  span: LogSpan | null;
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

/** The lines: only those near the reader are laid out, and nothing moves under their eyes. */
export function LogList(props: LogListProps) {
  const {
    ref,
    store,
    painted,
    settings,
    follows,
    onFollow,
    search,
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
  useReveal(ref, { store, version, rows, scroller, onFollow });
  useFollow(scroller, onFollow);
  const lineSearch = useMemo(
    () => (search === null ? null : new LineSearch(search, settings.dims)),
    [search, settings.dims],
  );

  // What is let go of is far from what is seen.
  useEffect(() => {
    store.readAt(follows ? null : window.numberAt(begin + (items[0]?.index ?? 0)));
  });

  return (
    <div className="relative flex min-h-0 flex-1 flex-col">
      <div
        ref={scroller}
        role="log"
        aria-label="Agent log"
        // A log that runs is not read aloud; who reads it moves through it.
        aria-live="off"
        onCopy={(event) => copyLines(event, window)}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
        tabIndex={0}
        className={SCROLLER}
      >
        <div style={{ height: rows.heightPx }} className="relative">
          <LogTop store={store} />
          {/* The room at the end is the rows’ own: one that measures taller than expected is scrolled to before the box grows. */}
          <div style={{ top: items[0]?.start, paddingBottom: BOTTOM_PX }} className="absolute inset-x-0">
            {items.map(({ key, index }) => {
              const row = window.rowAt(begin + index);
              if (row === null) return null;
              return (
                <div key={key} ref={rows.measure} data-index={index} data-row={begin + index}>
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
        </div>
      </div>
      {!follows && (
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

/** What stands above the first row. */
function LogTop({ store: { window, position } }: { store: LogStore }) {
  if (position === null || (window.older === null && window.rowCount === 0)) return null;
  return (
    <p className="absolute inset-x-0 top-0 flex h-8 items-center px-3 text-2xs text-ink-3 sm:px-4">
      {window.older === null ? 'Beginning of the log' : 'Looking further back…'}
    </p>
  );
}
