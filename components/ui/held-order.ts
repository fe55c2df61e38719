'use client';

import { type RefObject, useEffect, useState } from 'react';
import { afterPress } from './after-press';

/** Row ids of a list in display order, in named groups. */
export type RowOrder = readonly RowGroup[];

export interface RowGroup {
  name: string;
  ids: readonly string[];
}

/** Group for rows that arrive while the order is held. It is last, so that it moves no other row. */
export const NEW_ROWS = 'new';

/**
 * The order a held list shows: every row stays where it was, removed rows disappear, and new rows form a group at the
 * end.
 *
 * @param exists returns true for a row that still exists but is not in `now`, such as one a search no longer matches
 * @returns `order` is `held` itself if nothing changed; `moved` rows would change places, `added` rows are new
 */
export function heldOrder(
  held: RowOrder,
  now: RowOrder,
  exists?: (id: string) => boolean,
): { order: RowOrder; moved: number; added: number } {
  if (held === now || held.length === 0) return { order: now, moved: 0, added: 0 };
  const groupNow = new Map(now.flatMap(({ name, ids }) => ids.map((id) => [id, name] as const)));
  const isHeld = new Set(held.flatMap(({ ids }) => ids));
  const fresh = [...groupNow.keys()].filter((id) => !isHeld.has(id));
  const isOpen = held.at(-1)?.name === NEW_ROWS;
  const order = (isOpen || fresh.length === 0 ? held : [...held, { name: NEW_ROWS, ids: [] }])
    .map(({ name, ids }) => ({
      name,
      ids: [...ids.filter((id) => groupNow.has(id) || exists?.(id)), ...(name === NEW_ROWS ? fresh : [])],
    }))
    .filter(({ ids }) => ids.length > 0);
  let moved = 0;
  let added = 0;
  for (const { name, ids } of order) {
    if (name === NEW_ROWS) {
      added = ids.length;
      continue;
    }
    const staying = ids.filter((id) => groupNow.get(id) === name);
    moved += ids.length - staying.length;
    const wanted = now.find((group) => group.name === name)?.ids ?? [];
    moved += outOfOrder(staying, new Map(wanted.map((id, index) => [id, index])));
  }
  return { order: fresh.length === 0 && isSame(order, held) ? held : order, moved, added };
}

function isSame(one: RowOrder, other: RowOrder): boolean {
  return one.length === other.length && one.every(({ ids }, index) => ids.length === other[index]?.ids.length);
}

/** The fewest ids that must move to sort the rest: all but the longest increasing subsequence. */
function outOfOrder(ids: readonly string[], places: ReadonlyMap<string, number>): number {
  // For each length, the smallest place that an increasing subsequence of that length ends with.
  const ends: number[] = [];
  for (const id of ids) {
    const place = places.get(id) as number;
    let [from, to] = [0, ends.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((ends[middle] as number) < place) from = middle + 1;
      else to = middle;
    }
    ends[from] = place;
  }
  return ids.length - ends.length;
}

/**
 * Holds the order of rows while the pointer is over them or the keyboard focus moves through them, so that a press hits
 * the row the reader aimed at. Rows still update in place. The order follows when the reader leaves or calls `release`.
 *
 * @param now the current order; the same object while unchanged
 * @param of identifies the list, such as a search: a different list is never held
 * @param exists see `heldOrder`
 */
export function useHeldOrder(
  box: RefObject<HTMLElement | null>,
  now: RowOrder,
  of = '',
  exists?: (id: string) => boolean,
): { order: RowOrder; moved: number; added: number; release: () => void } {
  const isHeld = useIsInUse(box);
  const [saved, setSaved] = useState({ of, order: now });
  const holds = isHeld && saved.of === of && saved.order.length > 0;
  const shown = heldOrder(holds ? saved.order : now, now, exists);
  // New rows keep their place, too, once shown.
  const nextOrder = holds && shown.added === 0 ? saved.order : shown.order;
  if (saved.order !== nextOrder || saved.of !== of) setSaved({ of, order: nextOrder });
  return { ...shown, release: () => setSaved({ of, order: now }) };
}

const WALKED = 'a:focus-visible, button:focus-visible, li:focus-visible, li :focus-visible';

/** True while the pointer is over the box, or the keyboard has moved the focus into it. */
function useIsInUse(box: RefObject<HTMLElement | null>): boolean {
  const [isInUse, setIsInUse] = useState(false);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    let isOver = false;
    const update = () => {
      const { activeElement } = document;
      // Excludes search fields beside the rows, and rows focused by a pointer press.
      const walks = element.contains(activeElement) && activeElement?.matches(WALKED);
      setIsInUse(document.visibilityState === 'visible' && (isOver || (walks ?? false)));
    };
    const onPointer = ({ type }: PointerEvent) => {
      if (isOver && type !== 'pointerleave') return;
      isOver = type !== 'pointerleave';
      // On touch screens the pointer leaves before its click.
      if (isOver) update();
      else afterPress(update);
    };
    const onFocus = ({ type, relatedTarget }: FocusEvent) => {
      // Between two rows the focus is briefly in neither.
      if (type === 'focusin' || !element.contains(relatedTarget as Node | null)) afterPress(update);
    };
    const listening = new AbortController();
    const { signal } = listening;
    // `pointermove` catches a pointer that was over the box before this effect ran.
    for (const type of ['pointerenter', 'pointermove', 'pointerleave'] as const) {
      element.addEventListener(type, onPointer, { signal });
    }
    for (const type of ['focusin', 'focusout'] as const) element.addEventListener(type, onFocus, { signal });
    document.addEventListener('visibilitychange', update, { signal });
    return () => listening.abort();
  }, [box]);
  return isInUse;
}
