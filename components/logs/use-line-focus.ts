'use client';

import { type RefObject, useCallback, useEffect, useRef } from 'react';

/**
 * Brings the focus to a log's lines: for whoever goes on in it when it opens, and on leaving its search. There its keys
 * work, and what is found afterwards may stand in another list, which takes the focus over.
 *
 * @param store of the lines that stand there; null while none do
 * @param takesFocus whether it goes there from what is around the log, as soon as there are lines
 * @returns brings it there
 */
export function useLineFocus(
  box: RefObject<HTMLElement | null>,
  store: object | null,
  takesFocus: boolean,
): () => void {
  const isWanted = useRef(false);
  const toLines = useCallback(() => {
    (box.current?.querySelector<HTMLElement>('[role="log"]') ?? box.current)?.focus({ preventScroll: true });
  }, [box]);

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
