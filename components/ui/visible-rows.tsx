'use client';

import { createContext, type RefObject, useContext, useEffect } from 'react';
import { isInView } from './in-view';

/** This much of a row, in pixels, counts as looked at; of a smaller row, half. */
const ENOUGH_PX = 20;
const THRESHOLDS = [0, 0.25, 0.5, 0.75, 1];

/** Which of some rows stand in the window, whatever they scroll in. */
export class VisibleRows {
  readonly #rows = new Map<Element, string>();
  readonly #inWindow = new Set<Element>();
  #watched: { ids: ReadonlySet<string>; observer: IntersectionObserver } | null = null;

  /** @returns takes it back */
  add(id: string, row: Element): () => void {
    this.#rows.set(row, id);
    if (this.#watched?.ids.has(id)) this.#watched.observer.observe(row);
    return () => {
      this.#watched?.observer.unobserve(row);
      this.#rows.delete(row);
      this.#inWindow.delete(row);
    };
  }

  /** @param onChange told when a row comes into the window or leaves it. @returns ends it */
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

  /** Those of them that nothing stands over. */
  uncovered(): ReadonlySet<string> {
    const seen = [...this.#inWindow].filter((row) => isInView(row, row.getBoundingClientRect()));
    return new Set(seen.flatMap((row) => this.#rows.get(row) ?? []));
  }
}

/** Null if nobody asks. */
export const VisibleRowsContext = createContext<VisibleRows | null>(null);

/** Has a row watched for whether it is in sight, where anybody asks for that. */
export function useVisibleRow(row: RefObject<Element | null>, id: string | null): void {
  const rows = useContext(VisibleRowsContext);
  useEffect(() => {
    if (rows !== null && id !== null && row.current !== null) return rows.add(id, row.current);
  }, [rows, id, row]);
}
