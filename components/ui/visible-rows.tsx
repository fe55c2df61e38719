'use client';

import { createContext, type RefObject, useContext, useEffect } from 'react';
import { isInView } from './in-view';

/** A row counts as visible from this many pixels on, or half of a smaller row. */
const ENOUGH_PX = 20;
const THRESHOLDS = [0, 0.25, 0.5, 0.75, 1];

/** Tracks which rows are inside the window, whatever scroller they are in. */
export class VisibleRows {
  readonly #rows = new Map<Element, string>();
  readonly #inWindow = new Set<Element>();
  #watched: { ids: ReadonlySet<string>; observer: IntersectionObserver } | null = null;

  /** @returns a function that removes the row */
  add(id: string, row: Element): () => void {
    this.#rows.set(row, id);
    if (this.#watched?.ids.has(id)) this.#watched.observer.observe(row);
    return () => {
      this.#watched?.observer.unobserve(row);
      this.#rows.delete(row);
      this.#inWindow.delete(row);
    };
  }

  /** @param onChange called when a row enters or leaves the window. @returns a function that stops watching */
  watch(ids: ReadonlySet<string>, onChange: () => void): () => void {
    const note = (entries: IntersectionObserverEntry[]) => {
      for (const { target, boundingClientRect: whole, intersectionRect: part } of entries) {
        const isThere = part.height > 0 && part.height >= Math.min(ENOUGH_PX, whole.height / 2);
        if (isThere) this.#inWindow.add(target);
        else this.#inWindow.delete(target);
      }
      onChange();
    };
    const observer = new IntersectionObserver(note, { threshold: THRESHOLDS });
    this.#watched = { ids, observer };
    for (const [row, id] of this.#rows) if (ids.has(id)) observer.observe(row);
    return () => {
      observer.disconnect();
      this.#inWindow.clear();
      this.#watched = null;
    };
  }

  get isAnyInWindow(): boolean {
    return this.#inWindow.size > 0;
  }

  /** Ids of rows in the window that no overlay covers. */
  uncovered(): ReadonlySet<string> {
    const seen = [...this.#inWindow].filter((row) => isInView(row, row.getBoundingClientRect()));
    return new Set(seen.flatMap((row) => this.#rows.get(row) ?? []));
  }
}

export const VisibleRowsContext = createContext<VisibleRows | null>(null);

/** Registers a row with the enclosing context, if there is one. */
export function useVisibleRow(row: RefObject<Element | null>, id: string | null): void {
  const rows = useContext(VisibleRowsContext);
  useEffect(() => {
    if (rows !== null && id !== null && row.current !== null) return rows.add(id, row.current);
  }, [rows, id, row]);
}
