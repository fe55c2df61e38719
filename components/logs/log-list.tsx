'use client';

import { type Ref, useEffect, useImperativeHandle, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import type { LogFilter } from '@/lib/projections/log-filter';
import type { Position } from '@/lib/protocol/position';
import type { LogLine } from '@/lib/protocol/read-models';
import { copyLines } from './copy-lines';
import { GapRow } from './gap-row';
import { LineSearch } from './line-search';
import { LogEnd, LogTop } from './log-edges';
import { LogRow } from './log-row';
import type { LogSettings } from './log-settings';
import type { LogStore } from './log-store';
import { MarkerRow } from './marker-row';
import { NewLines } from './new-lines';
import { useFollow } from './use-follow';
import { useLogFill } from './use-log-fill';
import { BOTTOM_PX, useLogRows } from './use-log-rows';
import { type LogReveal, useReveal } from './use-reveal';

/** A span of time, by the runner's clock. */
export interface LogSpan {
  from: number;
  to: number;
}

export interface LogListHandle extends LogReveal {
  unfold: (line: LogLine) => void;
}

export interface LogListProps {
  ref: Ref<LogListHandle>;
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
  onLine: (line: LogLine) => void;
  onContext: ((line: LogLine) => void) | null;
  hasLinks: boolean;
}

export const SCROLLER =
  '@container min-h-0 flex-1 overflow-y-auto overflow-x-hidden overscroll-contain -outline-offset-2 [overflow-anchor:none]';

const NONE: ReadonlySet<Position> = new Set();

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
    onLine,
    onContext,
    hasLinks,
  } = props;
  const version = useSyncExternalStore(store.subscribe, store.version, () => 0);
  const scroller = useRef<HTMLDivElement>(null);
  const [unfolded, setUnfolded] = useState(NONE);
  const { buffer } = store;
  const { items, begin, heightPx, measure, places } = useLogRows({
    store,
    version,
    painted,
    scroller,
    follows,
    wraps: settings.wraps,
  });
  const [firstRow, lastRow] = [begin + (items[0]?.index ?? 0), begin + (items.at(-1)?.index ?? 0)];
  const fill = useLogFill({ store, version, places, firstRow, lastRow, scroller, follows });
  const reveal = useReveal({ store, version, places, scroller, onFollow });
  useFollow(scroller, onFollow);
  const lineSearch = useMemo(
    () => (search === null ? null : new LineSearch(search, settings.dims)),
    [search, settings.dims],
  );

  // What must be let go of is far from what is seen.
  useEffect(() => {
    const line = buffer.lineAt(firstRow) ?? buffer.lineAt(firstRow + 1);
    store.anchor = follows ? null : (line?.position ?? null);
  });

  const [unfold] = useState(() => (line: LogLine) => {
    onFollow(false);
    setUnfolded((before) => {
      const next = new Set(before);
      if (!next.delete(line.position)) next.add(line.position);
      return next;
    });
  });

  useImperativeHandle(ref, () => ({ ...reveal, unfold }), [reveal, unfold]);

  // The keys take the focus along, unless it is in a field.
  useEffect(() => {
    const { activeElement, body } = document;
    if (cursor === null || !(activeElement === body || scroller.current?.contains(activeElement))) return;
    scroller.current?.querySelector<HTMLElement>(`[data-line="${cursor}"]`)?.focus({ preventScroll: true });
  }, [cursor]);

  return (
    <div className="relative flex min-h-0 flex-1 flex-col">
      <div
        ref={scroller}
        role="log"
        aria-label="Agent log"
        // A log that runs is not read aloud; who reads it moves through it.
        aria-live="off"
        onCopy={(event) => copyLines(event, buffer)}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
        tabIndex={0}
        className={SCROLLER}
      >
        <div style={{ height: heightPx }} className="relative">
          <LogTop store={store} />
          {/* The room at the end is the rows’ own: one that measures taller than expected is scrolled to before the box grows. */}
          <div style={{ top: items[0]?.start, paddingBottom: BOTTOM_PX }} className="absolute inset-x-0">
            {items.map(({ key, index }) => {
              const row = buffer.rowAt(begin + index);
              if (row === null) return null;
              return (
                <div key={key} ref={measure} data-index={index} data-row={begin + index}>
                  {row.kind === 'gap' ? (
                    <GapRow
                      gap={row.gap}
                      isLoading={store.isLoading(row.gap)}
                      error={store.errorOf(row.gap)}
                      onFill={(button) => fill(row.gap, button)}
                    />
                  ) : row.line.marker ? (
                    <MarkerRow
                      line={{ ...row.line, marker: row.line.marker }}
                      style={settings}
                      isTarget={row.line.position === target}
                    />
                  ) : (
                    <LogRow
                      line={row.line}
                      settings={settings}
                      search={lineSearch}
                      isCursor={row.line.position === cursor}
                      isTarget={row.line.position === target}
                      isInSpan={span !== null && row.line.occurredAt >= span.from && row.line.occurredAt <= span.to}
                      isUnfolded={unfolded.has(row.line.position)}
                      onLine={onLine}
                      onUnfold={unfold}
                      onContext={onContext}
                      hasLinks={hasLinks}
                    />
                  )}
                </div>
              );
            })}
          </div>
        </div>
        <LogEnd store={store} />
      </div>
      {!follows && <NewLines store={store} onEnd={reveal.end} />}
    </div>
  );
}
