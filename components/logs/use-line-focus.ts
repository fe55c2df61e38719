'use client';

import { type RefObject, useCallback, useEffect, useRef } from 'react';
import type { LogReveal } from './use-reveal';

/**
 * Brings the focus to a log's lines: when the log opens for a reader who goes on in it, and when they leave its search.
 * There its keys work. What is found afterwards may stand in another list, which takes the focus over.
 *
 * @returns brings it there
 */
export function useLineFocus(options: {
  box: RefObject<HTMLElement | null>;
  list: RefObject<LogReveal | null>;
  /** Of the lines that stand there; null while none do. */
  store: object | null;
  /** Whether the focus goes there from what is around the log, as soon as there are lines. */
  takesFocus: boolean;
}): () => void {
  const { box, list, store, takesFocus } = options;
  const isWanted = useRef(false);
  const toLines = useCallback(() => {
    if (list.current) list.current.focus();
    else box.current?.focus({ preventScroll: true });
  }, [box, list]);

  useEffect(() => {
    if (store !== null && takesFocus && document.activeElement?.contains(box.current)) toLines();
  }, [store, takesFocus, box, toLines]);
  useEffect(() => {
    if (store === null || !isWanted.current) return;
    const { activeElement, body } = document;
    if (activeElement === body || activeElement === box.current) toLines();
  }, [store, box, toLines]);
  useEffect(() => {
    const goneElsewhere = ({ target }: FocusEvent) => {
      if (!box.current?.contains(target as Node)) isWanted.current = false;
    };
    document.addEventListener('focusin', goneElsewhere);
    return () => document.removeEventListener('focusin', goneElsewhere);
  }, [box]);

  return useCallback(() => {
    isWanted.current = true;
    toLines();
  }, [toLines]);
}
