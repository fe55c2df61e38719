'use client';

import type { Position } from '@interlude/protocol/position';
import type { LogLine } from '@interlude/protocol/read-models';
import type { VirtualItem } from '@tanstack/react-virtual';
import { type Ref, type RefObject, useEffectEvent, useImperativeHandle, useLayoutEffect, useRef } from 'react';
import type { LogStore } from './log-store';
import { type LogRows, rowOf } from './use-log-rows';

/** Number of lines shown above the target. */
const LINES_BEFORE = 2;

type Align = 'center' | 'start';

/** Scrolls to a place of the log, loading it if necessary. */
export interface LogHandle {
  line(position: Position): void;
  /** The first line at or after this time. */
  time(at: number): void;
  first(): void;
  /** Follows the end. Returns the newest line if it is loaded. */
  end(): LogLine | null;
  /** Focuses the lines. */
  focus(): void;
  /** The line that the reader is at: `chosen` if it is in view, else the first one fully in view. */
  seen(chosen?: Position | null): Position | null;
  /** Moves to the line below or above, to one in view, or to the newest one while the log follows. */
  beside(position: Position | null, direction: 1 | -1): LogLine | null;
}

export function useLogHandle(
  ref: Ref<LogHandle>,
  options: {
    store: LogStore;
    version: number;
    rows: LogRows;
    scroller: RefObject<HTMLDivElement | null>;
    follows: boolean;
    onFollow: (follows: boolean) => void;
  },
): void {
  const { store, version, rows, scroller, follows, onFollow } = options;
  const { window } = store;
  /** The row to show as soon as it is loaded. */
  const pending = useRef<{ row: () => number; align: Align } | null>(null);

  const goToWanted = () => {
    const index = pending.current?.row() ?? -1;
    if (pending.current === null || index < 0) return;
    const { align } = pending.current;
    pending.current = null;
    rows.scrollToRow(align === 'start' ? Math.max(0, index - LINES_BEFORE) : index, align);
  };
  const onDrawn = useEffectEvent(goToWanted);
  const onOpened = useEffectEvent(() => {
    if (store.place.kind === 'newest') return;
    pending.current = { row: () => rowOf(store), align: store.place.kind === 'line' ? 'center' : 'start' };
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs once per store
  useLayoutEffect(() => onOpened(), [store]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version stands for the rows
  useLayoutEffect(() => onDrawn(), [store, version]);

  /** @param nearest fallback if the row does not exist */
  const show = (row: () => number, nearest: () => number, align: Align, load: () => Promise<void>) => {
    onFollow(false);
    const request = { row, align };
    pending.current = request;
    if (row() >= 0) {
      goToWanted();
      return;
    }
    void load().then(() => {
      // After the loaded lines have rendered.
      requestAnimationFrame(() => {
        if (pending.current !== request) return;
        const index = nearest();
        pending.current = null;
        if (index >= 0) rows.scrollToRow(index, align);
      });
    });
  };

  const seen = (chosen: Position | null = null) => {
    const { scrollTop = 0, clientHeight = 0 } = scroller.current ?? {};
    const positionOf = ({ index }: VirtualItem) => window.lineAt(rows.begin + index)?.position ?? null;
    const inView = rows.items.filter(({ start, end }) => end > scrollTop && start < scrollTop + clientHeight);
    if (chosen !== null && inView.some((item) => positionOf(item) === chosen)) return chosen;
    const complete = inView.filter(({ start, end }) => start >= scrollTop && end <= scrollTop + clientHeight);
    return complete.map(positionOf).find((position) => position !== null) ?? null;
  };

  useImperativeHandle(ref, () => ({
    line(position) {
      const nearest = () => window.indexFrom(position);
      const row = () => window.indexOf(position);
      show(row, nearest, 'center', () => store.open({ kind: 'line', position }));
    },
    time(at) {
      const nearest = () => window.indexWhere((line) => line.occurredAt >= at);
      // The first held line after that time is the right one only if no line is missing before it.
      const row = () => {
        const index = nearest();
        const isSure = index > 0 ? window.lineAt(index - 1) !== null : window.older === null;
        return isSure ? index : -1;
      };
      show(row, nearest, 'start', () => store.open({ kind: 'time', at }));
    },
    first() {
      const row = () => (window.older === null && window.rowCount > 0 ? 0 : -1);
      show(row, row, 'start', () => store.openFirst());
    },
    end() {
      pending.current = null;
      onFollow(true);
      rows.scrollToEnd();
      return window.lineAt(window.rowCount - 1);
    },
    focus: () => scroller.current?.focus({ preventScroll: true }),
    seen,
    beside(position, direction) {
      const last = window.rowCount - 1;
      const held = position === null || (follows && seen(position) !== position) ? -1 : window.indexFrom(position);
      const from = follows ? null : seen();
      const next = held >= 0 ? held + direction : from === null ? last : window.indexOf(from);
      // Skips a gap.
      const index = window.lineAt(next) === null ? next + direction : next;
      const line = window.lineAt(index);
      if (line !== null) {
        if (index < last) onFollow(false);
        rows.scrollToRow(index, 'auto');
      }
      return line;
    },
  }));
}
