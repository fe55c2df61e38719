'use client';

import { type RefObject, useCallback, useLayoutEffect, useMemo, useRef } from 'react';
import type { Position } from '@/lib/protocol/position';
import type { LogLine } from '@/lib/protocol/read-models';
import type { LogStore } from './log-store';
import { type LogPlaces, rowOf } from './use-log-rows';

/** What comes first is more plainly the first with something before it. */
const LINES_BEFORE = 2;

type Align = 'center' | 'start';

/** Brings a place of the log into view, loading it first where need be. */
export interface LogReveal {
  line(position: Position): void;
  /** The first line at that time or later. */
  time(at: number): void;
  first(): void;
  end(): void;
  /** The line the reader is at: this one if it is in view, else the first that is whole in view. */
  seen(chosen?: Position | null): Position | null;
  /** The line below or above this one, or near what is seen, brought into view. */
  beside(position: Position | null, way: 1 | -1): LogLine | null;
}

export function useReveal(options: {
  store: LogStore;
  version: number;
  places: LogPlaces;
  scroller: RefObject<HTMLDivElement | null>;
  onFollow: (follows: boolean) => void;
}): LogReveal {
  const { store, version, places, scroller } = options;
  const onFollow = useRef(options.onFollow);
  onFollow.current = options.onFollow;
  const wanted = useRef<{ row: () => number; align: Align } | null>(null);

  const tryReveal = useCallback(() => {
    if (wanted.current === null) return;
    const { row, align } = wanted.current;
    const index = row();
    if (index < 0) return;
    wanted.current = null;
    places.scrollToRow(align === 'start' ? Math.max(0, index - LINES_BEFORE) : index, align);
  }, [places]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever something came
  useLayoutEffect(tryReveal, [version, tryReveal]);

  // A reading begins where it was opened.
  useLayoutEffect(() => {
    if (store.place.kind === 'newest') return;
    wanted.current = { row: () => rowOf(store), align: store.place.kind === 'line' ? 'center' : 'start' };
    tryReveal();
  }, [store, tryReveal]);

  const reveal = useMemo((): LogReveal => {
    const { buffer } = store;
    /** @param nearest the row to make do with when what was asked for turns out not to be there */
    const show = (row: () => number, nearest: () => number, align: Align, load: () => Promise<void>) => {
      onFollow.current(false);
      wanted.current = { row, align };
      if (row() >= 0) {
        tryReveal();
        return;
      }
      const asked = wanted.current;
      void load().then(() => {
        // once what came has been drawn
        requestAnimationFrame(() => {
          if (wanted.current !== asked) return;
          wanted.current = { row: nearest, align };
          tryReveal();
          wanted.current = null;
        });
      });
    };
    return {
      line(position) {
        store.anchor = position;
        show(
          () => buffer.indexOf(position),
          () => buffer.indexFrom(position),
          'center',
          () => store.open({ kind: 'line', position }),
        );
      },
      time(at) {
        const nearest = () => buffer.indexWhere((line) => line.occurredAt >= at);
        // where lines are missing, the first one held after that time need not be the first there is
        const row = () => {
          const index = nearest();
          const isSure = index > 0 ? buffer.lineAt(index - 1) !== null : buffer.older === null;
          return isSure ? index : -1;
        };
        show(row, nearest, 'start', () => store.open({ kind: 'time', at }));
      },
      first() {
        const row = () => (buffer.older === null && buffer.rowCount > 0 ? 0 : -1);
        show(row, row, 'start', () => store.openFirst());
      },
      end() {
        wanted.current = null;
        onFollow.current(true);
        places.scrollToEnd();
        if (buffer.newer !== null) void store.open();
      },
      seen(chosen = null) {
        // by the box itself: of one that has nothing to scroll the places is never told where it stands
        const from = scroller.current?.scrollTop ?? 0;
        const to = from + (scroller.current?.clientHeight ?? 0);
        const lines: Position[] = [];
        for (let row = places.rowNear(from); places.startOf(row) < to && row < buffer.rowCount; row++) {
          const isWhole = places.startOf(row) >= from && places.startOf(row + 1) <= to;
          const line = isWhole ? buffer.lineAt(row) : null;
          if (line !== null) lines.push(line.position);
        }
        return chosen !== null && lines.includes(chosen) ? chosen : (lines[0] ?? null);
      },
      beside(position, way) {
        const held = position === null ? -1 : buffer.indexFrom(position);
        const seen = this.seen();
        const from = held >= 0 ? held + way : seen === null ? buffer.rowCount - 1 : buffer.indexOf(seen);
        // over a gap, to the line behind it
        const index = buffer.lineAt(from) === null ? from + way : from;
        const line = buffer.lineAt(index);
        if (line !== null) {
          onFollow.current(false);
          places.scrollToRow(index, 'auto');
        }
        return line;
      },
    };
  }, [store, places, scroller, tryReveal]);

  return reveal;
}
