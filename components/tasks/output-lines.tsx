'use client';

import { addTo } from '@interlude/protocol/grouped';
import { type RefObject, useEffect, useMemo } from 'react';
import { useRowWindow } from '@/components/ui/row-window';
import { useOwnKeys } from '@/components/ui/shortcuts/use-shortcuts';
import { sizeOf } from '@/components/ui/size-of';
import type { OutputHit, OutputRow } from './output-rows';
import { OutputText } from './output-text';

const LINE_PX = 18;

/** The lines of an output: only those near the reader are laid out. */
export function OutputLines(props: {
  scroller: RefObject<HTMLDivElement | null>;
  name: string;
  rows: readonly OutputRow[];
  hits: readonly OutputHit[];
  current: OutputHit | null;
  /** Whether the reader is at the end, and stays there. */
  follows: boolean;
}) {
  const { scroller, name, rows, hits, current, follows } = props;
  const virtualizer = useRowWindow({
    scroller,
    follows,
    version: rows,
    count: rows.length,
    estimateSize: () => LINE_PX,
    overscan: 12,
  });
  const byRow = useMemo(() => hitsByRow(hits), [hits]);
  useEffect(() => {
    if (current !== null && !follows) virtualizer.scrollToIndex(current.row, { align: 'center' });
  }, [current, follows, virtualizer]);
  // It scrolls by the keys that lead through the transcript around it.
  useOwnKeys(scroller);

  return (
    <div
      ref={scroller}
      role="log"
      aria-label={name}
      // Who reads it moves through it: it is not read aloud.
      aria-live="off"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard
      tabIndex={0}
      className="max-h-[min(60vh,34rem)] overflow-y-auto overscroll-contain px-2 py-1 font-mono text-ink-2 text-xs -outline-offset-2 [overflow-anchor:none]"
    >
      <div style={{ height: virtualizer.getTotalSize() }} className="relative">
        {virtualizer.getVirtualItems().map(({ key, index, start }) => (
          <div
            key={key}
            ref={virtualizer.measureElement}
            data-index={index}
            style={{ transform: `translateY(${start}px)` }}
            className="absolute inset-x-0 top-0"
          >
            <OutputRowView row={rows[index]} hits={byRow.get(index) ?? NONE} current={current} />
          </div>
        ))}
      </div>
    </div>
  );
}

const NONE: readonly OutputHit[] = [];

function hitsByRow(hits: readonly OutputHit[]): ReadonlyMap<number, OutputHit[]> {
  const byRow = new Map<number, OutputHit[]>();
  for (const hit of hits) addTo(byRow, hit.row, hit);
  return byRow;
}

function OutputRowView(props: { row: OutputRow | undefined; hits: readonly OutputHit[]; current: OutputHit | null }) {
  const { row, hits, current } = props;
  if (row === undefined) return null;
  if (row.kind === 'hole') {
    return (
      <p className="border-line-strong border-y border-dashed py-0.5 font-sans text-2xs text-ink-3">
        {row.bytes === null ? 'What was written before this' : `${sizeOf(row.bytes)} before this`} is not kept
      </p>
    );
  }
  return <OutputText spans={row.spans} hits={hits} current={current} />;
}
