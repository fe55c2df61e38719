'use client';

import { type RefObject, useEffect, useState } from 'react';
import { afterPress } from './after-press';
import { heldOrder, type RowOrder } from './held-order';

/**
 * Keeps rows where they are while the pointer is over them or the focus walks through them: what is pressed is what was
 * seen there. What changes is shown in place, and the order follows once the reader has left, or says so.
 *
 * @param now the order as it is; the same object as long as it is the same
 * @param of what is listed: once that is something else, as another search is, there is nothing to hold
 * @param isThere as of `heldOrder`
 */
export function useHeldOrder(
  box: RefObject<HTMLElement | null>,
  now: RowOrder,
  of = '',
  isThere?: (id: string) => boolean,
): { order: RowOrder; moved: number; added: number; letGo: () => void } {
  const isHeld = useHolds(box);
  const [kept, setKept] = useState({ of, order: now });
  const holds = isHeld && kept.of === of && kept.order.length > 0;
  const shown = heldOrder(holds ? kept.order : now, now, isThere);
  // What has come in keeps its place from then on, too.
  const keeps = holds && shown.added === 0 ? kept.order : shown.order;
  if (kept.order !== keeps || kept.of !== of) setKept({ of, order: keeps });
  return { ...shown, letGo: () => setKept({ of, order: now }) };
}

const WALKED = 'a:focus-visible, button:focus-visible, li:focus-visible, li :focus-visible';

/** Whether the pointer is over it, or the focus is in it that a key has brought there. */
function useHolds(box: RefObject<HTMLElement | null>): boolean {
  const [isHeld, setIsHeld] = useState(false);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    let isOver = false;
    const look = () => {
      const { activeElement } = document;
      // A field that stands beside the rows holds none. A reader who pressed a row with the pointer has gone on from it.
      const walks = element.contains(activeElement) && activeElement?.matches(WALKED);
      setIsHeld(document.visibilityState === 'visible' && (isOver || (walks ?? false)));
    };
    const onPointer = ({ type }: PointerEvent) => {
      if (isOver && type !== 'pointerleave') return;
      isOver = type !== 'pointerleave';
      // A finger leaves as it lets go, before its press has come to anything.
      if (isOver) look();
      else afterPress(look);
    };
    const onFocus = ({ type, relatedTarget }: FocusEvent) => {
      // On its way from row to row it is in neither.
      if (type === 'focusin' || !element.contains(relatedTarget as Node | null)) afterPress(look);
    };
    const listening = new AbortController();
    const { signal } = listening;
    // A pointer that was there before has not entered: it is known by its first move.
    for (const type of ['pointerenter', 'pointermove', 'pointerleave'] as const) {
      element.addEventListener(type, onPointer, { signal });
    }
    for (const type of ['focusin', 'focusout'] as const) element.addEventListener(type, onFocus, { signal });
    document.addEventListener('visibilitychange', look, { signal });
    return () => listening.abort();
  }, [box]);
  return isHeld;
}
